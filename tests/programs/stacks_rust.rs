// stacks_rust ROUNDS: allocates from closures, generic code, trait objects, iterators, threads and, where panics
// unwind, from destructors and handlers of panics. Prints a checksum.
use std::collections::{BTreeMap, HashMap};
use std::thread;

struct Careful(usize);

impl Drop for Careful {
    // Also while a panic takes it along.
    fn drop(&mut self) {
        std::hint::black_box(format!("careful number {}", self.0));
    }
}

trait Shape {
    fn draw(&self, depth: usize) -> usize;
}

struct Circle;
struct Group(Vec<Box<dyn Shape>>);

impl Shape for Circle {
    fn draw(&self, depth: usize) -> usize {
        std::hint::black_box(vec![depth; 20 + depth]).len()
    }
}

impl Shape for Group {
    #[inline(never)]
    fn draw(&self, depth: usize) -> usize {
        let _careful = Careful(depth);
        self.0.iter().map(|shape| shape.draw(depth + 1)).sum()
    }
}

fn nested(depth: usize) -> Box<dyn Shape> {
    if depth == 0 {
        Box::new(Circle)
    } else {
        Box::new(Group(vec![nested(depth - 1), Box::new(Circle)]))
    }
}

fn words(round: usize) -> usize {
    let text = (0..30).map(|i| format!("word{}", (i * 7 + round) % 11)).collect::<Vec<_>>().join(" ");
    let mut counts: HashMap<String, usize> = HashMap::new();
    text.split(' ').for_each(|word| *counts.entry(word.to_owned()).or_default() += 1);
    let sorted: BTreeMap<_, _> = counts.into_iter().collect();
    sorted.values().max().copied().unwrap_or(0) + sorted.len()
}

#[cfg(panic = "unwind")]
fn panics(round: usize) -> usize {
    let caught = std::panic::catch_unwind(|| {
        let _careful = Careful(round);
        let numbers = std::hint::black_box(vec![1, 2, 3]);
        if numbers.len() == 3 {
            std::panic::panic_any(format!("round {round} went wrong"));
        }
        numbers.len()
    });
    *caught.unwrap_err().downcast::<String>().map(|text| Box::new(text.len())).unwrap()
}

#[cfg(not(panic = "unwind"))]
fn panics(round: usize) -> usize {
    round
}

fn work(round: usize) -> usize {
    nested(round % 6).draw(0) + words(round) + panics(round)
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let rounds: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut checksum = 0;
    for round in 0..rounds {
        checksum += work(round);
        let builder = thread::Builder::new().name(format!("worker {round}"));
        checksum += builder.spawn(move || work(round)).unwrap().join().unwrap();
    }
    println!("{checksum}");
}
