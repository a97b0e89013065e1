//! The CPU time of processes.

// clock_getcpuclockid has no safe wrapper here.
#![allow(unsafe_code)]

use std::time::Duration;

/// The CPU time of a process since its start, user and system, with that of its threads that have ended: in ns, while
/// `/proc/PID/stat` counts ticks of 10 ms. The sum over `/proc/PID/task` lacks each thread that has ended.
pub fn cpu_time(pid: u32) -> Duration {
    let pid = libc::pid_t::try_from(pid).expect("a process id");
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both pointers are those of locals, and the calls keep none.
    let failed = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
    assert_eq!(failed, 0, "process {pid} has no CPU clock");
    // SAFETY: as above.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert_eq!(failed, 0, "the CPU clock of process {pid}: {}", std::io::Error::last_os_error());
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.try_into().expect("below a second"))
}

/// The CPU time of the calling thread.
pub fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.try_into().expect("a time since the thread began")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_have_ended_count() {
        let own = || cpu_time(std::process::id());
        let (before, busy) = (own(), Duration::from_millis(20));
        let work = move || while thread_cpu_time() < busy {};
        std::thread::spawn(work).join().unwrap();
        let counted = own().saturating_sub(before);
        assert!(counted >= busy, "{counted:?}");
    }
}
