use std::time::Instant;
fn main() {
    let n: usize = std::env::args().nth(1).map_or(100_000, |s| s.parse().unwrap());
    let rt = reveille::Runtime::builder().workers(1).stack_size(64 * 1024).build().unwrap();
    rt.run(move || {
        let t = Instant::now();
        let mut hs = Vec::with_capacity(n);
        let mut last = t;
        for i in 0..n {
            hs.push(reveille::thread::spawn(|| reveille::thread::park()));
            if i % (n / 10) == n / 10 - 1 {
                let now = Instant::now();
                println!("{} {:.0} ns", i, (now - last).as_nanos() as f64 / (n / 10) as f64);
                last = now;
            }
        }
        println!("create {:.0} ns", t.elapsed().as_nanos() as f64 / n as f64);
        for h in &hs {
            h.thread().unpark();
        }
        for h in hs {
            h.join().unwrap();
        }
    });
}
