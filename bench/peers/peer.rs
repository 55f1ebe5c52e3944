// Times the uuid crate with its fast random numbers (feature fast-rng). Prints KEY, what, median and best
// ns a call, separated by tabs.
use std::hint::black_box;
use std::time::{Duration, Instant};
use uuid::Uuid;

const ROUNDS: usize = 9;
const RUN: Duration = Duration::from_millis(20);

fn ns_per_call(call: &dyn Fn()) -> f64 {
    let (mut n, start) = (0u64, Instant::now());
    loop {
        call();
        n += 256;
        let d = start.elapsed();
        if d >= RUN {
            return d.as_nanos() as f64 / n as f64;
        }
    }
}

fn report(key: &str, what: &str, call: &dyn Fn()) {
    ns_per_call(call);
    let mut round: Vec<f64> = (0..ROUNDS).map(|_| ns_per_call(call)).collect();
    round.sort_by(|a, b| a.partial_cmp(b).unwrap());
    println!("{}\t{}\t{:.3}\t{:.3}", key, what, round[ROUNDS / 2], round[0]);
}

// 256 calls in one function, so that the call through a pointer does not count.
macro_rules! row {
    ($key:expr, $what:expr, $make:expr) => {
        report($key, $what, &|| {
            for _ in 0..256 {
                let _ = black_box($make);
            }
        })
    };
}

fn main() {
    let mut text = [0u8; 36];
    row!("uuid4", "Uuid::new_v4", Uuid::new_v4());
    row!("uuid4.text", "Uuid::new_v4, to_string", Uuid::new_v4().to_string());
    row!("uuid7", "Uuid::now_v7", Uuid::now_v7());
    row!("uuid7.text", "Uuid::now_v7, to_string", Uuid::now_v7().to_string());
    let id = Uuid::new_v4();
    text.copy_from_slice(id.to_string().as_bytes());
    let text = std::str::from_utf8(&text).unwrap();
    row!("uuid.parse", "Uuid::try_parse", Uuid::try_parse(black_box(text)));
    row!("uuid.format", "Uuid::hyphenated().encode_lower", {
        let mut out = [0u8; 36];
        black_box(id).hyphenated().encode_lower(&mut out);
        out
    });
}
