//! Multi-plane fabrics.

use super::*;
use crate::net::shapes::Xdr;
use crate::scenario::{Overrides, Scenario};
use ib_mad::rate::{Speed, Width};

fn bench(text: &str) -> Bench {
    let scenario = Scenario::parse("test", text).unwrap().resolve(&Overrides::default()).unwrap();
    Bench { simulation: Simulation::new(scenario), now: Moment::default() }
}

/// What ports send, in bytes a second.
fn sent(bench: &Bench, labels: [&str; 4]) -> [u64; 4] {
    let load = |label| bench.simulation.port(bench.port(label)).counts.load().xmit_bytes;
    #[expect(clippy::cast_sign_loss, reason = "loads are not negative")]
    labels.map(|label| load(label).round() as u64)
}

const PLANES: [&str; 4] = ["host-0[1]", "host-0[2]", "host-0[3]", "host-0[4]"];

#[test]
fn each_plane_carries_its_share() {
    let mut bench = bench("{fabric: {xdr: {}}, traffic: {pattern: across, load: 20%}}");
    assert_eq!(sent(&bench, PLANES), [5_000_000_000; 4]);
    // Traffic stays in its plane, with odd numbers of hosts, too.
    let uneven = self::bench("{fabric: {xdr: {hosts: 7}}, traffic: {pattern: across}}");
    for bench in [&bench, &uneven] {
        let net = bench.simulation.net();
        for port in net.port_ids().filter(|port| net.port(*port).number == 145) {
            let load = bench.simulation.port(port).counts.load();
            assert_eq!(*load, crate::load::PortLoad::default(), "{}", net.label(port));
        }
    }
    // The others carry the share of a plane that is down, at either end.
    for down in ["host-0[2]", "leaf-1-a2[1]"] {
        bench.signal(down, false);
        let third = 20_000_000_000 / 3 + 1;
        assert_eq!(sent(&bench, PLANES), [third, 0, third, third], "{down}");
        bench.signal(down, true);
        bench.after(2_000);
        assert_eq!(sent(&bench, PLANES), [5_000_000_000; 4], "{down}");
    }
}

#[test]
fn ordinary_host_sends_to_all_planes() {
    let bench = bench(
        "{fabric: {xdr: {hosts: 1, prism: true, ordinary-hosts: 1}}, seat: host-0, \
         traffic: {pattern: across, load: 20%}}",
    );
    // NDR, 400 Gb/s, to four planes; and four times 200 Gb/s back.
    assert_eq!(
        sent(&bench, ["old-0[1]", "leaf-0[1]", "leaf-0[4]", "leaf-0[5]"])[..3],
        [10_000_000_000, 2_500_000_000, 2_500_000_000]
    );
    assert_eq!(sent(&bench, PLANES), [5_000_000_000; 4]);
}

#[test]
fn lid_is_reached_by_any_plane() {
    let mut bench = Bench::new(Xdr::default().build().unwrap());
    let from = bench.port("host-0[1]");
    let to = bench.port("host-5[1]");
    let hops = |bench: &Bench| HopCounts::new(&bench.simulation, from, true).to(to);
    assert_eq!(hops(&bench), Some(4));
    for plane in ["host-0[1]", "host-5[2]", "host-5[3]"] {
        bench.signal(plane, false);
        assert_eq!(hops(&bench), Some(4), "{plane}");
    }
    // The last common plane: other planes are reached by the ring of a switch.
    bench.signal("host-5[4]", false);
    assert_eq!(hops(&bench), Some(5));
    bench.signal("host-5[1]", false);
    assert_eq!(hops(&bench), None);
}

#[test]
fn rebooted_adapter_gets_its_lid_on_all_planes() {
    let mut bench = Bench::new(Xdr::default().build().unwrap());
    let lid = |bench: &Bench, label: &str| bench.simulation.port(bench.port(label)).lid;
    let before = lid(&bench, "host-5[1]");
    bench.power("host-5", false);
    bench.after(1_000);
    bench.power("host-5", true);
    assert_eq!(lid(&bench, "host-5[3]"), Lid(0));
    bench.after(2_000);
    for plane in 1..=4 {
        let label = format!("host-5[{plane}]");
        assert_eq!((lid(&bench, &label), bench.state(&label)), (before, PortState::Active));
    }
}

#[test]
fn faults_of_planes_are_made_of_ordinary_entries() {
    let mut bench = bench(
        "
fabric: {xdr: {}}
timeline:
  - unplug: {at: 1s, link: \"host-1[3]\"}
  - move-cable: {at: 1s, from: \"leaf-0-a1[3]\", to: \"leaf-0-a2[3]\"}
  - move-cable: {at: 1s, from: \"leaf-0-a4[4]\", to: \"leaf-1-a4[20]\"}
  - unplug: {at: 1s, link: \"leaf-1-a2[145]\"}
  - reboot: {at: 1s, node: spine-1-a3, down: 5s}
",
    );
    bench.after(3_000);
    for (port, peer) in [
        ("host-2[1]", Some("leaf-0-a2[3]")),
        ("host-2[2]", Some("leaf-0-a1[3]")),
        ("host-2[3]", Some("leaf-0-a3[3]")),
        ("host-3[4]", Some("leaf-1-a4[20]")),
    ] {
        assert_eq!(bench.cable(port).as_deref(), peer, "{port}");
        assert_eq!(bench.state(port), PortState::Active, "{port}");
        let trained = bench.simulation.port(bench.port(port)).trained;
        assert_eq!(trained, Some((Width::X1, Speed::Xdr)), "{port}");
    }
    for down in ["host-1[3]", "leaf-0-a3[2]", "leaf-1-a2[145]", "leaf-1-a3[146]", "leaf-0-a3[6]"] {
        assert_eq!(bench.state(down), PortState::Down, "{down}");
    }
    for up in ["host-1[2]", "leaf-1-a2[146]", "leaf-0-a2[6]", "spine-0-a3[1]"] {
        assert_eq!(bench.state(up), PortState::Active, "{up}");
    }
    bench.after(6_000);
    assert_eq!(bench.state("leaf-0-a3[6]"), PortState::Active);
}
