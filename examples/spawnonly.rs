use std::time::Instant;
fn main() {
    let rt = reveille::Runtime::builder().workers(1).build().unwrap();
    rt.run(|| {
        for r in 0..12 {
            let n = 1_000_000u64;
            let t = Instant::now();
            for i in 0..n {
                let h = reveille::thread::spawn(move || i);
                assert_eq!(h.join().unwrap(), i);
            }
            println!("{r} spawn+join {:.1} ns", t.elapsed().as_nanos() as f64 / n as f64);
        }
    });
}
