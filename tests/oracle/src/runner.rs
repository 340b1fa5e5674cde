//! Runs a suite twice, each time in a process of its own: with every test's body on a kernel thread, and with
//! every body in a reveille thread. All that the list names must run and pass; nothing else may be there.

extern crate test;

use crate::list::List;
use reveille::sync::Mutex;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::panic::{self, AssertUnwindSafe};
use std::process::{Command, Stdio, abort, exit};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, thread};
use test::{ShouldPanic, TestDescAndFn, TestFn};

/// Says to a child where the bodies run.
const WHERE: &str = "ORACLE_BODIES";
/// Bodies at the same time.
const AT_ONCE: usize = 4;
/// No test takes as long.
const HANGS: Duration = Duration::from_secs(60);
/// The slice of the reveille threads, so that they are preempted all the time.
const SLICE: Duration = Duration::from_micros(100);

/// A test, without what is not to be shared.
struct Test {
    name: String,
    should_panic: ShouldPanic,
    body: fn() -> Result<(), String>,
}

/// The main function of a suite: `list` has its names.
pub fn run(list: &str, tests: &[&TestDescAndFn]) {
    let args: Vec<String> = env::args().skip(1).collect();
    if let Ok(bodies) = env::var(WHERE) {
        // By hand, with parts of names.
        let wanted = |t: &Test| args.is_empty() || args.iter().any(|a| t.name.contains(a));
        child(&bodies, tests.iter().map(|t| test(t)).filter(wanted).collect());
    }
    if args.iter().any(|a| a == "--list") {
        tests.iter().for_each(|t| println!("{}", t.desc.name));
        return;
    }
    let mut faults = unlisted(&List::parse(list), tests);
    let mut passed = Vec::new();
    // At the same time: much of it is sleeping.
    let both = thread::scope(|s| {
        let both = ["kernel", "reveille"].map(|bodies| s.spawn(move || (bodies, results(bodies))));
        both.map(|one| one.join().unwrap())
    });
    for (bodies, results) in both {
        passed.push(results.values().filter(|r| *r == "ok").count());
        let mut missing = 0;
        for name in List::parse(list).must_run() {
            match results.get(name).map(String::as_str) {
                Some("ok") => {}
                Some(other) => faults.push(format!("{name} on {bodies} threads: {other}")),
                None => missing += 1,
            }
        }
        if missing > 0 {
            faults.push(format!("{missing} tests in the list did not run on {bodies} threads"));
        }
    }
    println!("{} passed on kernel threads, {} in reveille threads", passed[0], passed[1]);
    println!("{} left out", List::parse(list).left_out().count());
    if passed.contains(&0) {
        faults.push("nothing ran".into());
    }
    faults.iter().for_each(|f| println!("FAULT: {f}"));
    exit(i32::from(!faults.is_empty()));
}

fn test(t: &TestDescAndFn) -> Test {
    let TestFn::StaticTestFn(body) = t.testfn else { panic!("{} is no function", t.desc.name) };
    Test { name: t.desc.name.to_string(), should_panic: t.desc.should_panic, body }
}

/// What is there and not in the list.
fn unlisted(list: &List, tests: &[&TestDescAndFn]) -> Vec<String> {
    let known: Vec<&str> = list.must_run().collect();
    let names = tests.iter().map(|t| (t.desc.name.to_string(), t.desc.ignore));
    let unknown = names.filter(|(name, ignored)| *ignored || !known.contains(&name.as_str()));
    unknown
        .map(|(name, ignored)| match ignored {
            true => format!("{name} is ignored: leave it out with a reason"),
            false => format!("{name} is not in the list"),
        })
        .collect()
}

/// Runs all tests in a child; shows what it said if something went wrong.
fn results(bodies: &str) -> BTreeMap<String, String> {
    let me = env::current_exe().unwrap();
    let log = me.with_extension(format!("{bodies}.log"));
    let begun = Instant::now();
    let out = Command::new(&me)
        .env(WHERE, bodies)
        .stdin(Stdio::null())
        .stderr(File::create(&log).unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let lines = text.lines().filter_map(|l| l.strip_prefix("ORACLE ")?.split_once(' '));
    let results: BTreeMap<_, _> = lines.map(|(name, r)| (name.into(), r.into())).collect();
    if !out.status.success() || results.values().any(|r| r != "ok") {
        println!("{bodies} threads: {}; its standard error:", out.status);
        println!("{}", String::from_utf8_lossy(&fs::read(&log).unwrap()));
    }
    let more = text.lines().filter_map(|l| l.strip_prefix("ORACLE:")).collect::<String>();
    println!("{bodies} threads: {} tests in {:?}{more}", results.len(), begun.elapsed());
    results
}

/// Runs the tests and says how each went.
fn child(bodies: &str, tests: Vec<Test>) -> ! {
    // One line for a panic: most are meant.
    panic::set_hook(Box::new(|info| eprintln!("{info}")));
    let running: Arc<Mutex<Running>> = Arc::default();
    let todo = Arc::new(Mutex::new(tests.into_iter()));
    watch(Arc::clone(&running));
    let work = move || {
        loop {
            let Some(test) = todo.lock().unwrap().next() else { return };
            println!("ORACLE {} was running when the process ended", test.name);
            running.lock().unwrap().insert(test.name.clone(), Instant::now());
            let result = one(&test);
            let begun = running.lock().unwrap().remove(&test.name);
            eprintln!("{} took {:?}", test.name, begun.map(|b| b.elapsed()));
            println!("ORACLE {} {result}", test.name);
        }
    };
    if bodies == "kernel" {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| thread::spawn(work.clone())).collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
    } else {
        let runtime = reveille::Runtime::builder().workers(2).time_slice(SLICE).build().unwrap();
        let threads: Vec<_> = (0..AT_ONCE).map(|_| runtime.spawn(work.clone())).collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        let stats = runtime.stats();
        let preemptions: u64 = stats.workers.iter().map(|w| w.preemptions).sum();
        println!("ORACLE:, {preemptions} preemptions");
        // A test may have left threads behind that never end.
        std::mem::forget(runtime);
    }
    exit(0);
}

/// Since when.
type Running = BTreeMap<String, Instant>;

/// Ends the process when a test hangs.
fn watch(running: Arc<Mutex<Running>>) {
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_secs(1));
            let running = running.lock().unwrap();
            let late = running.iter().filter(|(_, begun): &(_, &Instant)| begun.elapsed() > HANGS);
            let late: Vec<&str> = late.map(|(name, _)| name.as_str()).collect();
            if !late.is_empty() {
                late.iter().for_each(|name| println!("ORACLE {name} hangs"));
                reveille::dump::dump_threads();
                abort();
            }
        }
    });
}

fn one(test: &Test) -> String {
    let ended = panic::catch_unwind(AssertUnwindSafe(test.body));
    let message = ended.as_ref().err().map(|e| {
        let text = e.downcast_ref::<&str>().map(|s| (*s).to_owned());
        text.or_else(|| e.downcast_ref::<String>().cloned()).unwrap_or_default()
    });
    let result = match (test.should_panic, ended, message) {
        (ShouldPanic::No, Ok(Ok(())), _) | (ShouldPanic::Yes, Err(_), _) => "ok".into(),
        (ShouldPanic::YesWithMessage(m), Err(_), Some(text)) if text.contains(m) => "ok".into(),
        (ShouldPanic::No, Ok(Err(e)), _) => format!("failed: {e}"),
        (_, Err(_), Some(text)) => format!("panicked: {text}"),
        _ => "did not panic".into(),
    };
    result.replace('\n', " ")
}
