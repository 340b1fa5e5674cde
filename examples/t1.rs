fn rec(n: u64) -> u64 {
    let a = [n; 64];
    std::hint::black_box(&a);
    if n == u64::MAX { 0 } else { rec(n + 1) + a[3] }
}
fn main() {
    let rt = reveille::Runtime::builder().workers(2).build().unwrap();
    match std::env::args().nth(1).as_deref() {
        Some("setuid") => {
            let hogs: Vec<_> = (0..4)
                .map(|_| {
                    rt.spawn(|| {
                        for _ in 0..200 {
                            assert_eq!(unsafe { libc::setuid(0) }, 0);
                        }
                    })
                })
                .collect();
            for h in hogs {
                h.join().unwrap();
            }
            for _ in 0..100 {
                assert_eq!(unsafe { libc::setgid(0) }, 0);
            }
            println!("setuid ok");
        }
        Some("overflow") => {
            reveille::thread::Builder::new()
                .name("deep".into())
                .spawn(|| rec(0))
                .unwrap()
                .join()
                .unwrap();
        }
        Some("segv") => rt.run(|| unsafe { *(16 as *mut u32) = 1 }),
        _ => {}
    }
}
