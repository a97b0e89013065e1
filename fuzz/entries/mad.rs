//! The bytes of a datagram, decoded as every known attribute.

use ib_mad::class_port_info::{ClassPortInfo, PmaCapabilities, Redirect};
use ib_mad::clear::CounterSelect;
use ib_mad::counter::Attribute;
use ib_mad::fec::{PortExtendedSpeedsCounters, PortInfoExtended};
use ib_mad::forwarding_table::LinearForwardingTable;
use ib_mad::pma;
use ib_mad::pma::{AgentProfile, DetailPolicy, OptionalCounters, PortSamplesControl};
use ib_mad::port_info::{MellanoxExtendedPortInfo, PortInfo};
use ib_mad::smp;
use ib_mad::smp::{NodeInfo, PKeyTable, SmInfo, SwitchInfo, SwitchPortStateTable};
use ib_mad::{LEN, Lid, Mad, Query};
use ib_mad::{Moment, Reading};

use super::input::Input;

/// Checks for each attribute that encoding and decoding are inverse.
macro_rules! both_ways {
    ($mad:expr, $($name:ident),+) => {$({
        let read = $name::decode($mad);
        let mut written = Mad([0; LEN]);
        read.encode(&mut written);
        assert_eq!($name::decode(&written), read);
        // Encoding over the same bytes changes nothing.
        let mut same = $mad.clone();
        read.encode(&mut same);
        assert!(same == *$mad, "{} is written as it was read", stringify!($name));
    })+};
}

/// A MAD, possibly truncated.
pub fn of(bytes: &[u8]) -> Mad {
    let mut mad = Mad([0; LEN]);
    mad.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    mad
}

pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mad = of(input.bytes(LEN));
    both_ways!(
        &mad,
        NodeInfo,
        SwitchInfo,
        PortInfo,
        PKeyTable,
        SmInfo,
        SwitchPortStateTable,
        LinearForwardingTable,
        PortInfoExtended,
        MellanoxExtendedPortInfo,
        ClassPortInfo,
        PortSamplesControl,
        PortExtendedSpeedsCounters,
        CounterSelect
    );
    meaning(&mad);
    header(&mad, &mut input);
}

/// The values derived from the fields.
fn meaning(mad: &Mad) {
    let info = NodeInfo::decode(mad);
    if let Some(identity) = info.identity() {
        assert_eq!(identity.guid, info.node_guid);
    }
    let description = smp::decode_node_description(mad);
    assert!(!description.contains(char::is_control), "{description:?}");
    let _ = smp::is_aggregation_node(&description, info.vendor_id);
    let port = PortInfo::decode(mad);
    let status = port.status(port.speed_fields());
    let _ = (port.reports_fec(), status.rate(), status.link_up(), status.at_fdr10());
    let _ = PortInfoExtended::decode(mad).fec();
    let _ = (
        MellanoxExtendedPortInfo::decode(mad).is_fdr10(),
        PKeyTable::port_and_block(mad.modifier()),
    );
    let table = SwitchPortStateTable::decode(mad);
    for number in 0..=255 {
        let _ = table.state(number);
    }
    let _ = port.has_state_table();
    let routes = LinearForwardingTable::decode(mad);
    for lid in 0..=u16::MAX {
        let _ = routes.entry(Lid(lid));
    }
    let _ = Redirect::decode(mad);
    let _ = CounterSelect::decode(mad).counters().count();
    let options = Some(PortSamplesControl::decode(mad).option_mask);
    let capabilities = PmaCapabilities::decode(mad);
    let offer =
        AgentProfile { capabilities, options, is_switch: mad.0[0] & 1 == 1, refused: Vec::new() };
    for extras in [
        OptionalCounters::default(),
        OptionalCounters { details: DetailPolicy::EachSweep, fec: true },
    ] {
        for page in pma::read_plan(&offer, extras) {
            let mut reading = Reading::empty(Moment::default());
            page.read(mad, &mut reading);
            assert!(page.counters.iter().all(|(counter, _)| reading.get(*counter).is_some()));
        }
    }
}

/// The header, and whether responses are recognized.
fn header(mad: &Mad, input: &mut Input<'_>) {
    let answer = mad.response();
    assert_eq!(
        (answer.transaction_id(), answer.attribute()),
        (mad.transaction_id(), mad.attribute())
    );
    assert!(mad.route_ports().len() <= 63);
    let _ = format!("{mad:?}");
    let port = input.u8();
    let queries: [Query; 6] = [
        smp::node_info(),
        smp::port_info(port),
        smp::port_info_extended(port),
        pma::class_port_info(),
        pma::samples_control(port),
        pma::counters(Attribute::PortCountersExtended, port),
    ];
    for query in queries {
        for directed in [false, true] {
            let _ = query.matches_response(mad, directed);
        }
        assert!(query.matches_response(&query.request(None, 7).response(), false));
    }
}
