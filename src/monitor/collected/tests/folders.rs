//! Directories that are refilled.

use std::path::Path;

use super::*;

fn write(folder: &Path, text: &str, second: u64) {
    let path = folder.join("ibdiagnet2.db_csv");
    std::fs::write(&path, text).unwrap();
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(now(second).wall).unwrap();
}

/// What ibdiagnet writes of a leaf and a host at a second.
fn db_csv(second: u64, errors: u64) -> String {
    let at = humantime::format_rfc3339_seconds(now(second).wall).to_string();
    let at = at.replace('T', " ").replace('Z', " UTC +0000");
    format!(
        "START_RUN_INFO\nDate\n\"{at}\"\nEND_RUN_INFO\n\
         START_NODES\nNodeDesc,NumPorts,NodeType,NodeGUID,PortGUID,LocalPortNum\n\
         \"leaf\",2,2,0xa,0xa,0\n\"host-1 mlx5_0\",1,1,0xb,0xb,1\nEND_NODES\n\
         START_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2\n0xa,1,0xb,1\nEND_LINKS\n\
         START_PM_INFO\nNodeGUID,PortNumber,SymbolErrorCounter,PortRcvErrors\n0xb,1,0,{errors}\nEND_PM_INFO\n"
    )
}

#[test]
fn directory_is_read_when_it_is_complete_and_again_when_it_changed() {
    let folder = tempfile::tempdir().unwrap();
    let mut watched = Watched::new(folder.path().to_str().unwrap());
    assert!(!watched.poll(0));
    assert!(watched.problem().unwrap().contains("it has no files"), "{:?}", watched.problem());
    write(folder.path(), &db_csv(10, 5), 14);
    assert!(!watched.poll(15), "it was written a second ago");
    assert!(watched.poll(30));
    assert_eq!((watched.errors(), watched.problem()), (Some(5), None));
    assert!(!watched.poll(45));
    let second = db_csv(310, 8);
    write(folder.path(), &second[..second.len() / 2], 315);
    assert!(!watched.poll(330));
    assert!(watched.problem().unwrap().contains("has no end: the file is truncated"));
    assert_eq!(watched.errors(), Some(5));
    write(folder.path(), &second, 335);
    // The clock of the file server is ahead: that the file stays as it is counts.
    write(folder.path(), &second, 9_000);
    assert!(!watched.poll(345));
    assert!(watched.poll(360));
    assert_eq!((watched.errors(), watched.problem()), (Some(8), None));
    let latest = watched.latest();
    let source = latest.source.as_ref().unwrap();
    assert_eq!((source.interval, &*source.format), (Some(Duration::from_secs(300)), "db_csv"));
    std::fs::remove_dir_all(folder.path()).unwrap();
    assert!(!watched.poll(375));
    assert!(watched.problem().unwrap().contains("No such file"), "{:?}", watched.problem());
}

#[test]
fn run_of_a_clock_that_was_set_back_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut watched = Watched::new(folder.path().to_str().unwrap());
    write(folder.path(), &db_csv(7_200, 5), 7_200);
    assert!(watched.poll(7_210));
    write(folder.path(), &db_csv(3_700, 6), 7_300);
    assert!(watched.poll(7_310));
    assert_eq!((watched.errors(), watched.problem()), (Some(6), None));
    write(folder.path(), &db_csv(3_800, 7), 7_400);
    assert!(watched.poll(7_410));
    // The run before is all that is left: nothing is new.
    let keep = folder.path().join("before");
    std::fs::rename(folder.path().join("ibdiagnet2.db_csv"), &keep).unwrap();
    assert!(!watched.poll(7_420), "a file has another name");
    write(folder.path(), &db_csv(3_900, 8), 7_500);
    assert!(watched.poll(7_510));
    std::fs::remove_file(folder.path().join("ibdiagnet2.db_csv")).unwrap();
    assert!(!watched.poll(7_520));
    assert_eq!(watched.errors(), Some(8));
}

#[test]
fn files_that_are_modified_all_the_time_are_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let mut watched = Watched::new(folder.path().to_str().unwrap());
    for second in (0..=315).step_by(15) {
        write(folder.path(), &db_csv(second, 5), second);
        assert!(!watched.poll(second));
        assert_eq!(watched.problem().is_some(), second > 300, "{second}");
    }
    let problem = watched.problem().unwrap();
    assert!(problem.starts_with("its files are modified all the time"), "{problem}");
    assert!(watched.poll(330));
    assert_eq!(watched.problem(), None);
}
