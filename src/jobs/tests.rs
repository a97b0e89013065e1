use job_list::{Job, JobList};

use super::*;

fn monitor(from: JobsFrom) -> (JobsMonitor, watch::Receiver<SharedState>) {
    let settings = JobsSettings { from, interval: Duration::from_secs(60), drained: true };
    let (states, receiver) = watch::channel(SharedState::default());
    (JobsMonitor::new(settings, None, Arc::new(states), Arc::default()), receiver)
}

fn list(id: &str) -> JobList {
    let job = Job { id: id.into(), hosts: vec!["gpu1".into()], ..Job::default() };
    JobList { jobs: vec![job], unreadable: 0 }
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn failure_keeps_the_last_jobs_and_says_why() {
    let (mut monitor, states) = monitor(JobsFrom::Slurm);
    let jobs = || states.borrow().jobs.clone().unwrap();
    let report = |jobs, drained| JobsReport { jobs, drained };
    monitor.publish(report(Ok(list("1")), Some(Ok(vec!["gpu7".into()]))), at(100));
    let first = jobs();
    assert_eq!((first.list.jobs.len(), &first.problem, first.read_at), (1, &None, Some(at(100))));
    let problem = || Err("squeue: no answer within 30 s".to_owned());
    monitor.publish(report(problem(), Some(Err("sinfo: down".into()))), at(160));
    let failed = jobs();
    assert_eq!(failed.problem.as_deref(), Some("squeue: no answer within 30 s; sinfo: down"));
    assert!(Arc::ptr_eq(&failed.list, &first.list) && failed.read_at == Some(at(100)));
    let same = |a: &JobsObservation, b: &JobsObservation| {
        Arc::ptr_eq(a.drained.as_ref().unwrap(), b.drained.as_ref().unwrap())
    };
    assert!(same(&failed, &first), "the drained hosts stay drained");
    assert!(failed.known(at(400)).is_some() && failed.known(at(401)).is_none());
    // The same again is not evaluated again.
    monitor.publish(report(Ok(list("1")), Some(Ok(vec!["gpu7".into()]))), at(220));
    let again = jobs();
    assert!(Arc::ptr_eq(&again.list, &first.list) && same(&again, &first));
    assert_eq!((&again.problem, again.read_at), (&None, Some(at(220))));
    monitor.publish(report(Ok(list("2")), Some(Ok(vec![]))), at(280));
    assert_eq!(jobs().list.jobs[0].id, "2");
    assert!(jobs().drained.as_ref().unwrap().is_empty());
}

/// Waits until the published jobs are as expected.
fn wait_for(
    states: &mut watch::Receiver<SharedState>,
    is_it: impl Fn(&JobsObservation) -> bool,
) -> JobsObservation {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let changed = states.wait_for(|state| state.jobs.as_ref().is_some_and(|jobs| is_it(jobs)));
    let limit = Duration::from_secs(60);
    let state = runtime.block_on(async { tokio::time::timeout(limit, changed).await });
    JobsObservation::clone(state.expect("in time").unwrap().jobs.as_ref().unwrap())
}

#[test]
fn directory_is_read_until_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (monitor, mut states) = monitor(JobsFrom::Directory(folder.path().join("jobs")));
    let monitor = JobsMonitor {
        settings: JobsSettings { interval: Duration::from_millis(300), ..monitor.settings },
        ..monitor
    };
    let stop = Arc::clone(&monitor.stop);
    let thread = std::thread::spawn(move || monitor.run());
    let missing = wait_for(&mut states, |jobs| jobs.problem.is_some());
    assert!(missing.problem.unwrap().contains("No such file") && missing.read_at.is_none());
    std::fs::create_dir(folder.path().join("jobs")).unwrap();
    std::fs::write(folder.path().join("jobs/gpu1"), "4711\n").unwrap();
    let read = wait_for(&mut states, |jobs| !jobs.list.jobs.is_empty());
    assert_eq!((&*read.list.jobs[0].id, read.problem), ("4711", None));
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

#[test]
fn end_of_the_process_is_a_problem() {
    let (monitor, mut states) = monitor(JobsFrom::Slurm);
    let stop = Arc::clone(&monitor.stop);
    let thread = std::thread::spawn(move || monitor.run());
    let ended = wait_for(&mut states, |jobs| jobs.problem.is_some());
    assert_eq!(ended.problem.as_deref(), Some(helper::ENDED));
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}
