use std::time::Instant;
fn main() {
    let st: usize = std::env::args().nth(1).map_or(2 << 20, |s| s.parse().unwrap());
    let rt = reveille::Runtime::builder().workers(1).stack_size(st).build().unwrap();
    rt.run(|| {
        let n = 10_000;
        for r in 0..40 {
            let t = Instant::now();
            let hs: Vec<_> = (0..n).map(|i| reveille::thread::spawn(move || i)).collect();
            let t1 = t.elapsed();
            for h in hs {
                h.join().unwrap();
            }
            if r % 8 == 7 {
                println!(
                    "{r} spawn {:.1} join {:.1} ns",
                    t1.as_nanos() as f64 / n as f64,
                    (t.elapsed() - t1).as_nanos() as f64 / n as f64
                );
            }
        }
    });
}
