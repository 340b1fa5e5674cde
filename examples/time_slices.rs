//! Four threads that never yield share one worker: a tick takes the worker away from each of them
//! every millisecond, wherever they are. The first letters of the printed line are the threads'
//! turns.
//!
//! `cargo run --release --example time_slices [seconds]`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reveille::{Runtime, SliceEnd};

const THREADS: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(2.0), |text| text.parse())?;
    let runtime = Runtime::builder()
        .workers(1)
        .time_slice(Duration::from_millis(1))
        .adaptive_slices(false)
        .record_slices(100_000)
        .build()?;

    let stop = Arc::new(AtomicBool::new(false));
    let hogs: Vec<_> = (0..THREADS)
        .map(|_| {
            let stop = Arc::clone(&stop);
            runtime.spawn(move || {
                let mut loops = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    loops += 1; // no call, no yield: nothing here gives the worker away
                }
                loops
            })
        })
        .collect();
    let ids: Vec<_> = hogs.iter().map(|hog| hog.thread().id()).collect();
    std::thread::sleep(Duration::from_secs_f64(seconds));
    stop.store(true, Ordering::Relaxed);
    let loops: Vec<u64> = hogs.into_iter().map(|hog| hog.join().expect("no panic")).collect();

    let slices = runtime.take_slices();
    let place = |id| ids.iter().position(|known| *known == id);
    let turns: String = slices
        .iter()
        .filter_map(|slice| place(slice.thread))
        .take(60)
        .map(|place| char::from(b'A' + place as u8))
        .collect();
    println!("turns     {turns}...");
    println!("thread      loops   slices   preempted   time");
    let total: Duration = slices
        .iter()
        .filter(|slice| place(slice.thread).is_some())
        .map(|slice| slice.end - slice.start)
        .sum();
    for (id, loops) in ids.iter().zip(loops) {
        let mine: Vec<_> = slices.iter().filter(|slice| slice.thread == *id).collect();
        let time: Duration = mine.iter().map(|slice| slice.end - slice.start).sum();
        let preempted = mine.iter().filter(|slice| slice.end_reason == SliceEnd::Preempted).count();
        println!(
            "{}    {loops:>13}   {:>6}   {preempted:>9}   {:5.2} %",
            char::from(b'A' + place(*id).unwrap_or(0) as u8),
            mine.len(),
            time.as_secs_f64() / total.as_secs_f64() * 100.0,
        );
    }
    runtime.shutdown()?;
    Ok(())
}
