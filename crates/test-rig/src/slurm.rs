//! A Slurm cluster of several nodes on this machine: its own munged, slurmctld, a slurmd per node, and, if asked for,
//! slurmdbd with MariaDB. All listen on the loopback or on sockets in a temporary directory.
//!
//! Debian builds slurmd with support for several nodes on one host.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::child::{self, Running, read_lossy};
use super::{free_port, require, wait_until};

/// How long a daemon may take to respond. Usually it takes a second or two.
const LIMIT: Duration = Duration::from_secs(40);

/// How long a command of Slurm may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(20);

/// A running cluster.
pub struct Slurm {
    /// Last started, first ended.
    daemons: Vec<Running>,
    dir: TempDir,
}

/// What a cluster has besides its nodes.
#[derive(Default)]
pub struct Options {
    /// Commands of bash that are the `HealthCheckProgram`, run every 2 s on each node. Slurm gives it no variables but
    /// `SLURMD_NODENAME` and `PWD`; so here it gets `SLURM_CONF`, too.
    pub health_check: Option<String>,
    /// Whether jobs are recorded, for `sacct`.
    pub accounting: bool,
}

impl Slurm {
    /// Starts nodes of these names, and waits until all are there: idle, or drained by the health check.
    pub fn start(nodes: &[&str], options: &Options) -> Self {
        let dir = tempfile::Builder::new().prefix("slurm-").tempdir().unwrap();
        let mut slurm = Self { daemons: Vec::new(), dir };
        slurm.start_munged();
        let mut config = slurm.config(nodes);
        if let Some(commands) = &options.health_check {
            let program = slurm.path("health-check");
            let text = format!(
                "#!/bin/bash\nexport SLURM_CONF={}\n{commands}\n",
                slurm.config_file().display()
            );
            std::fs::write(&program, text).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            let _ = writeln!(
                config,
                "HealthCheckProgram={}\nHealthCheckInterval=2\nHealthCheckNodeState=ANY",
                program.display()
            );
        }
        let accounting = options.accounting.then(free_port);
        if let Some(port) = accounting {
            let socket = slurm.path("munge.socket");
            let _ = writeln!(
                config,
                "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=localhost\n\
                 AccountingStoragePort={port}\nAccountingStoragePass={}",
                socket.display()
            );
        }
        std::fs::write(slurm.config_file(), config).unwrap();
        if let Some(port) = accounting {
            slurm.start_accounting(port);
        }
        slurm.spawn("slurmctld", &["-D"], &[]);
        for node in nodes {
            slurm.spawn("slurmd", &["-D", "-N", node], &[]);
        }
        wait_until(LIMIT, "all nodes of Slurm", || {
            slurm.assert_running();
            // A star behind the state is a node that does not respond.
            let said = slurm.run("sinfo", &["-h", "-N", "-o", "%T"]).stdout;
            let there = said.lines().filter(|state| matches!(state.trim(), "idle" | "drained"));
            (there.count() == nodes.len()).then_some(())
        });
        slurm
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A directory for files of a test, for as long as the cluster lives.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// `SLURM_CONF` of commands that ask this cluster.
    pub fn config_file(&self) -> PathBuf {
        self.path("slurm.conf")
    }

    fn config(&self, nodes: &[&str]) -> String {
        let here = hostname();
        let user = user();
        let dir = self.dir.path().display();
        let mut config = format!(
            "ClusterName=rig\n\
             SlurmctldHost={here}(127.0.0.1)\n\
             SlurmctldPort={port}\n\
             CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n\
             AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={dir}/munge.socket\n\
             SlurmUser={user}\nSlurmdUser={user}\n\
             StateSaveLocation={dir}/state\nSlurmdSpoolDir={dir}/spool-%n\n\
             SlurmctldPidFile={dir}/slurmctld.pid\nSlurmdPidFile={dir}/slurmd-%n.pid\n\
             MpiDefault=none\nSwitchType=switch/none\nTaskPlugin=task/none\n\
             ProctrackType=proctrack/linuxproc\nJobAcctGatherType=jobacct_gather/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
             SlurmdParameters=config_overrides\nReturnToService=2\n",
            port = free_port(),
        );
        for node in nodes {
            let _ = writeln!(
                config,
                "NodeName={node} NodeHostname={here} NodeAddr=127.0.0.1 Port={} CPUs=2 State=UNKNOWN",
                free_port()
            );
        }
        config + "PartitionName=main Nodes=ALL Default=YES MaxTime=10 State=UP\n"
    }

    fn start_munged(&mut self) {
        let key = self.path("munge.key");
        // Any secret of at least 32 bytes. Only this cluster has it.
        std::fs::write(&key, self.dir.path().as_os_str().as_encoded_bytes().repeat(8)).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let flag = |name: &str, file: &str| format!("--{name}={}", self.path(file).display());
        let flags = [
            "--foreground".to_owned(),
            "--num-threads=2".to_owned(),
            flag("key-file", "munge.key"),
            flag("socket", "munge.socket"),
            flag("pid-file", "munge.pid"),
            flag("log-file", "munge.log"),
            flag("seed-file", "munge.seed"),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        self.spawn("munged", &flags, &[]);
        let socket = self.path("munge.socket");
        self.wait_for("munged", || socket.exists());
    }

    /// Starts MariaDB, without a port, and slurmdbd.
    fn start_accounting(&mut self, port: u16) {
        let dir = self.dir.path().display().to_string();
        let user = user();
        let data = format!("--datadir={dir}/db");
        let as_user = format!("--user={user}");
        let flags = [
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            &data,
            &as_user,
        ];
        let mut command = self.command("mariadb-install-db", &flags);
        let made = child::run("mariadb-install-db", &mut command, self.dir.path(), LIMIT);
        assert!(made.status.success(), "mariadb-install-db: {}{}", made.stdout, made.stderr);
        let socket = self.path("db.socket");
        let flags = [
            "--no-defaults",
            "--skip-networking",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=32M",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-lock-wait-timeout=900",
            &data,
            &as_user,
            &format!("--socket={}", socket.display()),
            &format!("--pid-file={dir}/db.pid"),
        ];
        self.spawn("mariadbd", &flags, &[]);
        self.wait_for("mariadbd", || std::os::unix::net::UnixStream::connect(&socket).is_ok());

        let file = self.path("slurmdbd.conf");
        let config = format!(
            "AuthType=auth/munge\nAuthInfo=socket={dir}/munge.socket\n\
             DbdHost=localhost\nDbdAddr=127.0.0.1\nDbdPort={port}\n\
             CommunicationParameters=NoInAddrAny\n\
             SlurmUser={user}\nPidFile={dir}/slurmdbd.pid\n\
             StorageType=accounting_storage/mysql\nStorageHost=localhost\nStorageUser=root\nStorageLoc=slurm\n"
        );
        std::fs::write(&file, config).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        // slurmdbd looks for slurmdbd.conf beside SLURM_CONF, and its client library for the socket there.
        self.spawn("slurmdbd", &["-D"], &[("MYSQL_UNIX_PORT", &socket.display().to_string())]);
        self.wait_for("slurmdbd", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    }

    /// A command with the configuration of this cluster.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(require(program));
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env("SLURM_CONF", self.config_file())
            // sinfo and others take their format and their filters from such variables.
            .env_remove("SLURM_CLUSTERS")
            .env_remove("SLURM_TIME_FORMAT");
        command
    }

    fn spawn(&mut self, program: &str, arguments: &[&str], variables: &[(&str, &str)]) {
        let mut command = self.command(program, arguments);
        let log =
            File::create(self.path(&format!("log-{}-{program}", self.daemons.len()))).unwrap();
        command
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        self.daemons.push(Running::spawn(program, &mut command));
    }

    fn wait_for(&mut self, what: &str, is_there: impl Fn() -> bool) {
        wait_until(LIMIT, what, || {
            self.assert_running();
            is_there().then_some(())
        });
    }

    /// Panics with the log of a daemon that has ended.
    fn assert_running(&mut self) {
        for at in 0..self.daemons.len() {
            if let Some(status) = self.daemons[at].try_wait() {
                let logs = std::fs::read_dir(self.dir.path()).unwrap();
                let start = format!("log-{at}-");
                let log = logs.map(|it| it.unwrap().path()).find(|path| {
                    path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(&start))
                });
                let said = log.map(|path| (path.clone(), read_lossy(&path)));
                panic!("a daemon of Slurm ended with {status}: {said:?}");
            }
        }
    }

    /// Runs a command of Slurm to its end.
    pub fn run(&self, program: &str, arguments: &[&str]) -> child::Output {
        let own = tempfile::tempdir().unwrap();
        child::run(program, &mut self.command(program, arguments), own.path(), COMMAND_LIMIT)
    }

    /// The output of a command that must succeed.
    pub fn told(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        assert!(output.status.success(), "{program} {arguments:?}: {}", output.stderr);
        output.stdout
    }

    /// A node on one line, as `scontrol` shows it.
    pub fn node(&self, name: &str) -> String {
        self.told("scontrol", &["-o", "show", "node", name])
    }

    /// Submits a job that runs a shell command, with further options. Returns its ID.
    pub fn submit(&self, options: &[&str], script: &str) -> String {
        let arguments = [&["--parsable", "-o", "/dev/null"], options, &["--wrap", script]].concat();
        self.told("sbatch", &arguments).trim().to_owned()
    }

    /// Waits until a job is in a state, by `scontrol`.
    pub fn wait_job(&self, id: &str, state: &str) {
        let wanted = format!(" JobState={state} ");
        wait_until(LIMIT, &format!("job {id} to be {state}"), || {
            self.told("scontrol", &["-o", "show", "job", id]).contains(&wanted).then_some(())
        });
    }

    /// Ends what jobs left: steps are no children of slurmd. All have the configuration of this cluster in their
    /// environment.
    fn kill_steps(&self) {
        let mark = format!("SLURM_CONF={}", self.config_file().display());
        let Ok(processes) = std::fs::read_dir("/proc") else { return };
        for process in processes.flatten() {
            let name = process.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            let is_ours = environment.split(|byte| *byte == 0).any(|it| it == mark.as_bytes());
            let is_self = u32::try_from(id).is_ok_and(|id| id == std::process::id());
            if let (true, false, Some(pid)) = (is_ours, is_self, Pid::from_raw(id)) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // A panic here, while another one unwinds, would abort the process: nothing is asserted.
        while let Some(mut daemon) = self.daemons.pop() {
            let _ = daemon.end_within(Duration::from_secs(5));
        }
        self.kill_steps();
    }
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    name.trim().split('.').next().unwrap_or_default().to_owned()
}

/// The user that runs the tests, by name.
fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
