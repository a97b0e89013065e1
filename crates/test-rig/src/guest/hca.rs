//! Devices of the guest, each there until its value is dropped.

use super::{Guest, ScriptOutput};

/// A device of testhca, the guest's HCA without a data path, and its interfaces.
///
/// Its commands are documented in `tests/kernel/testhca/control.c`.
pub struct TestHca {
    name: String,
}

impl Guest {
    /// A new device with this number of active ports. The name, of at most ten letters, digits and
    /// underscores, is this test's own: all tests of a process share the guest.
    pub fn testhca(&self, name: &str, ports: u32, eth: bool) -> TestHca {
        let eth = if eth { "eth" } else { "" };
        self.must(&format!("testhca add {name} ports {ports} {eth}"));
        TestHca { name: name.to_owned() }
    }

    /// Soft RoCE on one end of a pair of interfaces. The name is as for `testhca`.
    pub fn rxe(&self, name: &str) -> Rxe {
        let rxe = Rxe { name: name.to_owned() };
        let [end, peer] = [rxe.netdev(), rxe.peer()];
        self.must(&format!(
            "set -e; ip link add {end} type veth peer name {peer}
            ip link set {end} up; ip link set {peer} up
            rdma link add {name} type rxe netdev {end}"
        ));
        rxe
    }
}

impl TestHca {
    /// Its name, as below `/sys/class/infiniband`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the interface beside a port: Ethernet with the statistics of mlx5, or like IPoIB.
    pub fn netdev(&self, port: u32) -> String {
        format!("{}net{port}", self.name)
    }

    /// Sets `state`, `phys`, `speed`, `width`, `lid`, `sm_lid`, `pmafail` or `hwfail` of a port.
    pub fn set(&self, port: u32, what: &str, value: u32) {
        self.tell(&format!("port {port} {what} {value}"));
    }

    /// Sets a counter of a port by the name of its file in `counters/`. It is read as its field in
    /// the MAD can hold it.
    pub fn counter(&self, port: u32, name: &str, value: u64) {
        self.tell(&format!("port {port} counter {name} {value}"));
    }

    /// Sets a counter of a port by the name of its file in `hw_counters/`.
    pub fn hw(&self, port: u32, name: &str, value: u64) {
        self.tell(&format!("port {port} hw {name} {value}"));
    }

    /// Sets a statistic of the Ethernet interface beside a port.
    pub fn ethtool(&self, port: u32, name: &str, value: u64) {
        self.tell(&format!("port {port} ethtool {name} {value}"));
    }

    /// Writes to the memory of the module beside a port: at 0 to 127 of its lower half, from there on of the upper
    /// halves of its pages.
    pub fn module(&self, port: u32, at: usize, bytes: &[u8]) {
        let set = |(index, byte): (usize, &u8)| format!("module {} {byte}", at + index);
        self.set_all(port, &bytes.iter().enumerate().map(set).collect::<Vec<_>>());
    }

    /// Sets many things of a port at once, each as `what name value`: `hw np_cnp_sent 7`.
    pub fn set_all(&self, port: u32, settings: &[String]) {
        let tell = |it: &String| format!("testhca {} port {port} {it}\n", self.name);
        Guest::get().must(&settings.iter().map(tell).collect::<String>());
    }

    /// Makes the device report an event, by its number in `<infiniband/verbs.h>`; port 0 is the device.
    pub fn event(&self, code: u32, port: u32) {
        self.tell(&format!("event {code} {port}"));
    }

    /// Reads a file below a port's directory in sysfs, such as `counters/symbol_error`.
    pub fn read(&self, port: u32, file: &str) -> ScriptOutput {
        read(&self.name, port, file)
    }

    /// Removes it, as unloading a driver does: processes that hold it open receive `DEVICE_FATAL`.
    pub fn remove(self) {
        Guest::get().must(&format!("testhca del {}", self.name));
        // What Drop would do has been done.
        std::mem::forget(self);
    }

    fn tell(&self, what: &str) {
        Guest::get().must(&format!("testhca {} {what}", self.name));
    }
}

impl Drop for TestHca {
    fn drop(&mut self) {
        drop_by(&format!("testhca del {}", self.name));
    }
}

/// A device of soft RoCE.
pub struct Rxe {
    name: String,
}

impl Rxe {
    /// Its name, as below `/sys/class/infiniband`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface below it.
    pub fn netdev(&self) -> String {
        format!("{}end", self.name)
    }

    /// The other end of the cable.
    pub fn peer(&self) -> String {
        format!("{}peer", self.name)
    }

    /// Reads a file below its port's directory in sysfs.
    pub fn read(&self, file: &str) -> ScriptOutput {
        read(&self.name, 1, file)
    }
}

impl Drop for Rxe {
    fn drop(&mut self) {
        // One after the other: in parallel they can deadlock, and with them every process that needs an interface.
        // The first waits in the kernel for processes that hold the device open; it must not be interrupted.
        drop_by(&format!(
            "rdma link del {name} >/tmp/{name}.del 2>&1 &
            left=1000
            while [ -e /sys/class/infiniband/{name} ]; do
                left=$((left - 1)); [ $left -gt 0 ] || {{ echo {name} is held open; exit 1; }}
                sleep 0.01
            done
            wait && ip link del {}",
            self.netdev(),
            name = self.name
        ));
    }
}

fn read(device: &str, port: u32, file: &str) -> ScriptOutput {
    let mut output =
        Guest::get().sh(&format!("cat /sys/class/infiniband/{device}/ports/{port}/{file}"));
    output.text.truncate(output.text.trim_end().len());
    output
}

/// A failure of the removal fails its test, unless that has failed already.
fn drop_by(script: &str) {
    let output = Guest::get().try_sh(script);
    if !std::thread::panicking() {
        let output = output.unwrap_or_else(|e| panic!("in the guest, {script:?}: {e}"));
        assert_eq!(output.status, 0, "in the guest, {script:?}: {}", output.text);
    }
}
