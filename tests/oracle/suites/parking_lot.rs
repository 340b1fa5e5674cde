//! The tests of parking_lot, whose types are lock_api's over raw locks: here over reveille's.
#![feature(custom_test_frameworks, test)]
#![test_runner(crate::run)]
#![allow(warnings)]

extern crate oracle as std;
extern crate rand10 as rand;
extern crate self as parking_lot;
extern crate test as test_crate;

use reveille::sync::raw;

fn run(tests: &[&test_crate::TestDescAndFn]) {
    std::runner::run(include_str!("../lists/parking_lot.txt"), tests);
}

pub type Condvar = lock_api::Condvar<raw::RawCondvar>;
pub type FairMutex<T> = lock_api::Mutex<raw::RawFairMutex, T>;
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, raw::RawMutex, T>;
pub type Mutex<T> = lock_api::Mutex<raw::RawMutex, T>;
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, raw::RawMutex, T>;
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<raw::RawMutex, raw::RawThreadId, T>;
pub type ReentrantMutexGuard<'a, T> =
    lock_api::ReentrantMutexGuard<'a, raw::RawMutex, raw::RawThreadId, T>;
pub type RwLock<T> = lock_api::RwLock<raw::RawRwLock, T>;
pub type RwLockUpgradableReadGuard<'a, T> =
    lock_api::RwLockUpgradableReadGuard<'a, raw::RawRwLock, T>;
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, raw::RawRwLock, T>;

include!(concat!(env!("OUT_DIR"), "/parking_lot/modules.rs"));
