//! The kind of a fabric, which a few switches are asked for.

use super::*;
use crate::fabric_kind::FabricKind;
use ib_mad::hierarchy::{HierarchyInfo, template};
use ib_mad::vendor_smp::SmpCapabilities;

/// The local host and a row of 20 switches.
fn row() -> ScriptedTransport {
    let kinds: Vec<_> = std::iter::once((CA, 1)).chain([(SWITCH, 4); 20]).collect();
    let links: Vec<_> =
        (0..20).map(|nth| ((nth, if nth == 0 { 1 } else { 2 }), (nth + 1, 1))).collect();
    let mut nodes = fabric(&kinds, &links);
    for switch in &mut nodes[1..] {
        switch.hierarchy = Some(|_| HierarchyInfo::empty(template::XDR_SWITCH));
    }
    ScriptedTransport::new(nodes)
}

/// Discovers, and returns the fabric and how many requests there were for its kind.
fn discover(transport: &mut ScriptedTransport, previous: Option<&Fabric>) -> (Fabric, usize) {
    transport.sent.clear();
    let mut plan = Discovery::new(Arc::default(), None, HashSet::new()).with_kind(previous);
    run_plan(transport, &mut plan);
    let found = plan.finish();
    assert_eq!((found.failures, found.gaps), (0, vec![]), "a missing kind is no gap");
    let previous = previous.map(|fabric| (fabric, Moment(0)));
    let fabric = Fabric::assemble(found.fabric, &Naming::default(), transport.now(), previous);
    assert_eq!(fabric.nodes.len(), 21);
    let asked = transport.sent.iter().filter(|it| it.mad.attribute() == SmpCapabilities::ID);
    (fabric, asked.count())
}

#[test]
fn few_switches_are_asked_and_none_once_the_kind_is_known() {
    // They refuse the attribute, which switches of NVLink have.
    let mut transport = row();
    let (known, asked) = discover(&mut transport, None);
    assert_eq!((known.kind, asked), (Some(FabricKind::InfiniBand), 8));
    let (again, asked) = discover(&mut transport, Some(&known));
    assert_eq!((again.kind, asked), (Some(FabricKind::InfiniBand), 0));
}

/// Capability 54 alone, and all that NVIDIA names after NVLink.
const NVLINK: [u32; 4] = [0, 1 << (54 - 32), 0, 0];
const NVLINK_ALL: [u32; 4] = [0, 0x0240_0000 | 1 << (55 - 32), 1 << (75 - 64) | 1 << (77 - 64), 0];

/// The kind, if the switches have these masks by turns, and how many were asked.
fn kind_of(masks: &[Option<[u32; 4]>]) -> (Option<FabricKind>, usize) {
    let mut transport = row();
    let masks = masks.iter().cycle();
    for (switch, mask) in transport.nodes[1..].iter_mut().zip(masks) {
        switch.smp_capabilities = *mask;
    }
    let (fabric, asked) = discover(&mut transport, None);
    (fabric.kind, asked)
}

#[test]
fn fabric_is_nvlink_only_if_no_switch_contradicts() {
    const INFINIBAND: Option<FabricKind> = Some(FabricKind::InfiniBand);
    const OTHERS: [u32; 4] = [0, 0, 1 << (75 - 64) | 1 << (77 - 64), 0];
    for (masks, expected) in [
        (&[Some(NVLINK)][..], Some(FabricKind::NvLink)),
        (&[Some(NVLINK_ALL)], Some(FabricKind::NvLink)),
        // Ordinary firmware may announce these.
        (&[Some(OTHERS)], INFINIBAND),
        (&[Some([u32::MAX; 4])], None),
        (&[Some([u32::MAX; 4]), Some(NVLINK)], Some(FabricKind::NvLink)),
        // One of them does not, or refuses the attribute.
        (&[Some(NVLINK), Some([1 << 13, 0, 0, 0])], INFINIBAND),
        (&[Some(NVLINK), Some(NVLINK), None], INFINIBAND),
    ] {
        assert_eq!(kind_of(masks), (expected, 8), "{masks:x?}");
    }
}

#[test]
fn nvlink_is_asked_for_again_until_a_switch_contradicts() {
    let mut transport = row();
    transport.nodes.iter_mut().for_each(|node| node.smp_capabilities = Some(NVLINK));
    let (mut known, _) = discover(&mut transport, None);
    for _ in 0..3 {
        let (next, asked) = discover(&mut transport, Some(&known));
        assert_eq!((next.kind, asked), (Some(FabricKind::NvLink), 8));
        known = next;
    }
    // A status that is not "unsupported" says nothing.
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let is_kind = outgoing.mad.attribute() == SmpCapabilities::ID;
        if is_kind { Reply::Status(0x1c) } else { Reply::Answered(ROUND_TRIP) }
    });
    let (mut known, _) = discover(&mut transport, Some(&known));
    assert_eq!(known.kind, Some(FabricKind::NvLink));
    transport.reply = Box::new(|_: &OutgoingMad| Reply::Answered(ROUND_TRIP));
    transport.nodes[1].smp_capabilities = Some([1, 0, 0, 0]);
    for _ in 0..3 {
        known = discover(&mut transport, Some(&known)).0;
    }
    assert_eq!(known.kind, Some(FabricKind::InfiniBand));
}

#[test]
fn known_infiniband_switch_is_not_asked() {
    let mut transport = row();
    transport.nodes.iter_mut().for_each(|node| node.smp_capabilities = Some(NVLINK));
    // A Quantum-2 at the end of the row.
    transport.nodes[20].device_id = 54002;
    assert_eq!(discover(&mut transport, None).0.kind, Some(FabricKind::InfiniBand));
    transport.nodes[1..].iter_mut().for_each(|node| node.device_id = 54002);
    assert_eq!(discover(&mut transport, None).1, 0);
}

#[test]
fn older_switches_are_not_asked() {
    let mut transport = row();
    transport.nodes.iter_mut().for_each(|node| node.hierarchy = None);
    let (unknown, asked) = discover(&mut transport, None);
    assert_eq!((unknown.kind, asked), (None, 0));
}

#[test]
fn kind_stays_unknown_while_no_switch_responds() {
    let mut transport = row();
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        if outgoing.mad.attribute() == SmpCapabilities::ID {
            Reply::Lost
        } else {
            Reply::Answered(ROUND_TRIP)
        }
    });
    let tries = usize::from(SendConfig::default().retries) + 1;
    let (mut unknown, asked) = discover(&mut transport, None);
    assert!(unknown.kind.is_none() && asked <= 8 * tries, "{asked}");
    let mut asked_in = Vec::new();
    for discovery in 1..20 {
        let (next, asked) = discover(&mut transport, Some(&unknown));
        assert!(next.kind.is_none());
        if asked > 0 {
            asked_in.push(discovery);
        }
        unknown = next;
    }
    assert_eq!(asked_in, [2, 6, 14], "ever more rarely");
    transport.reply = Box::new(|_: &OutgoingMad| Reply::Answered(ROUND_TRIP));
    for _ in 0..16 {
        unknown = discover(&mut transport, Some(&unknown)).0;
    }
    assert_eq!(unknown.kind, Some(FabricKind::InfiniBand));
}
