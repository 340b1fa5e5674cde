use reveille::StartMethod;
fn main() {
    let m = match std::env::args().nth(1).as_deref() {
        Some("signal") => StartMethod::Signal,
        Some("context") => StartMethod::Context,
        _ => StartMethod::Pool,
    };
    let rt = reveille::Runtime::builder().workers(1).start_method(m).build().unwrap();
    println!("up");
    std::thread::spawn(|| {
        std::thread::sleep(std::time::Duration::from_secs(2));
        reveille::dump::dump_threads();
        std::thread::sleep(std::time::Duration::from_secs(0));
        std::process::abort();
    });
    println!("{}", rt.spawn(|| 5).join().unwrap());
    rt.run(|| {
        for i in 0..1000 {
            assert_eq!(reveille::thread::spawn(move || i).join().unwrap(), i);
        }
    });
    rt.shutdown().unwrap();
    println!("ok");
}
