//! Words of a made-up text counted in a tree, grouped by their length, joined and dropped again: strings, vectors,
//! boxes and shared references, as Rust programs have them.
//!
//!     trees ROUNDS
use std::collections::BTreeMap;
use std::rc::Rc;

/// xorshift64: the same text in every run.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn word(state: &mut u64) -> String {
    let number = next(state);
    (0..3 + number % 9).map(|place| (b'a' + (number >> (5 * place) & 15) as u8) as char).collect()
}

enum Node {
    Leaf(Rc<str>),
    Pair(Box<Node>, Box<Node>),
}

fn build(words: &[Rc<str>]) -> Node {
    match words {
        [only] => Node::Leaf(Rc::clone(only)),
        _ => {
            let (left, right) = words.split_at(words.len() / 2);
            Node::Pair(Box::new(build(left)), Box::new(build(right)))
        }
    }
}

fn letters(node: &Node) -> usize {
    match node {
        Node::Leaf(text) => text.len(),
        Node::Pair(left, right) => letters(left) + letters(right),
    }
}

fn round(state: &mut u64) -> usize {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..6000 {
        *counts.entry(word(state)).or_insert(0) += 1;
    }
    let mut by_length: BTreeMap<usize, Vec<Rc<str>>> = BTreeMap::new();
    for text in counts.keys() {
        by_length.entry(text.len()).or_default().push(Rc::from(text.as_str()));
    }
    by_length
        .values()
        .map(|words| letters(&build(words)) + words.iter().map(|text| format!("{text}, ")).collect::<String>().len())
        .sum()
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let mut state = 88172645463325252;
    println!("{}", (0..rounds).map(|_| round(&mut state)).sum::<usize>());
}
