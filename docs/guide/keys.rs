//! A server that keeps values under keys: lines of SET KEY VALUE and GET KEY. It grows although its keys do not get
//! more: docs/guide.md attaches to it and finds out where.
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

#[derive(Default)]
struct Store {
    values: HashMap<String, String>,
    journal: Vec<String>, // to be written to disk some day
}

impl Store {
    fn set(&mut self, key: &str, value: &str) {
        self.note(key, value);
        self.values.insert(key.to_string(), value.to_string());
    }

    fn note(&mut self, key: &str, value: &str) {
        self.journal.push(format!("{} {}", key, value));
    }
}

fn serve(store: &mut Store, client: TcpStream) -> std::io::Result<()> {
    let mut answers = client.try_clone()?;
    for line in BufReader::new(client).lines() {
        let line = line?;
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let answer = match words[..] {
            ["SET", key, value] => {
                store.set(key, value);
                "ok"
            }
            ["GET", key] => store.values.get(key).map_or("", |value| value),
            _ => "what?",
        };
        answers.write_all(format!("{}\n", answer).as_bytes())?;
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    std::fs::write("keys.port", listener.local_addr()?.port().to_string())?;
    let mut store = Store::default();
    for client in listener.incoming() {
        serve(&mut store, client?)?;
    }
    Ok(())
}
