use std::sync::atomic::*;
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
        Some("fork") => {
            static STOP: AtomicBool = AtomicBool::new(false);
            let hogs: Vec<_> =
                (0..3).map(|_| rt.spawn(|| while !STOP.load(Ordering::Relaxed) {})).collect();
            let f: Vec<_> = (0..4)
                .map(|_| {
                    rt.spawn(|| {
                        for i in 0..50 {
                            let pid = unsafe { libc::fork() };
                            if pid == 0 {
                                let v: Vec<String> = (0..100).map(|i| format!("x{i}")).collect();
                                std::thread::spawn(move || v.len()).join().unwrap();
                                let hs: Vec<_> = (0..20)
                                    .map(|k| {
                                        reveille::thread::spawn(move || {
                                            let mut x = 0u64;
                                            for j in 0..300_000u64 {
                                                x = std::hint::black_box(x + j);
                                            }
                                            (x, k)
                                        })
                                    })
                                    .collect();
                                let pre: usize = hs.into_iter().map(|h| h.join().unwrap().1).sum();
                                assert_eq!(pre, 190);
                                if i % 2 == 0 {
                                    std::process::exit(7);
                                }
                                return;
                            }
                            let mut st = 0;
                            let r = loop {
                                let r = unsafe { libc::waitpid(pid, &mut st, 0) };
                                if r != -1 {
                                    break r;
                                }
                            };
                            assert_eq!(r, pid);
                            let want = if i % 2 == 0 { 7 << 8 } else { 0 };
                            assert_eq!(st, want, "child {i}");
                        }
                    })
                })
                .collect();
            for h in f {
                h.join().unwrap();
            }
            STOP.store(true, Ordering::Relaxed);
            for h in hogs {
                h.join().unwrap();
            }
            println!("fork ok");
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
