use std::time::Instant;
fn main() {
    let w: usize = std::env::args().nth(1).map_or(1, |s| s.parse().unwrap());
    let rt = reveille::Runtime::builder().workers(w).build().unwrap();
    println!("started");
    println!("run: {}", rt.run(|| 42));
    rt.run(|| {
        for r in 0..5 {
            let n = 1_000_000;
            let t = Instant::now();
            for i in 0..n {
                let h = reveille::thread::spawn(move || i);
                assert_eq!(h.join().unwrap(), i);
            }
            println!("{r} spawn+join {:.1} ns", t.elapsed().as_nanos() as f64 / n as f64);
        }
        let hs: Vec<_> = (0..10)
            .map(|_| {
                reveille::thread::spawn(|| {
                    for _ in 0..1_000_000 {
                        reveille::thread::yield_now();
                    }
                })
            })
            .collect();
        let t = Instant::now();
        for h in hs {
            h.join().unwrap();
        }
        println!("yield {:.1} ns", t.elapsed().as_nanos() as f64 / 10e6);
    });
    let hogs: Vec<_> = (0..4)
        .map(|i| {
            rt.spawn(move || {
                let mut x = 0u64;
                let t = Instant::now();
                while t.elapsed().as_millis() < 200 {
                    x = x.wrapping_mul(31).wrapping_add(i);
                }
                (x, reveille::thread::current().preemptions())
            })
        })
        .collect();
    for h in hogs {
        println!("{:?}", h.join().unwrap());
    }
    println!("{:?}", rt.stats());
    rt.shutdown().unwrap();
}
