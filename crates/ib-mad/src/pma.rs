//! Performance management: which attributes to ask a port for, and what its answers hold.

use std::time::Duration;

use crate::PortNumber;
use crate::counter::{Attribute, Counter, Kind, Needs, Place, Row, TABLE};
use crate::reading::{Raw, Reading};

use super::class_port_info::{self, Capabilities};
use super::layout::{attribute, bits, byte, bytes};
use super::m_key::MKey;
use super::{Mad, Query};

const fn query(attribute: u16, port_select: PortNumber) -> Query {
    Query { subnet: false, attribute, modifier: 0, port_select, clear: None, m_key: MKey::NONE }
}

/// Asks what a device's agent can do.
pub fn class_port_info() -> Query {
    query(class_port_info::ID, 0)
}

/// Asks for counters of one port.
pub fn counters(attribute: Attribute, port: PortNumber) -> Query {
    query(attribute as u16, port)
}

/// Asks how an agent samples a port: for the tick, and for the options that it announces.
pub fn samples_control(port: PortNumber) -> Query {
    query(PortSamplesControl::ID, port)
}

/// When the causes of errors and discards are read: PortRcvErrorDetails and PortXmitDiscardDetails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Details {
    /// Not at all.
    #[default]
    Never,
    /// From the devices that announce them, at this interval.
    Every(Duration),
    /// In each sweep, from every device that does not refuse them.
    EachSweep,
}

/// What ports are asked for beside the counters that every fabric is watched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Extras {
    /// The causes of errors and discards.
    pub details: Details,
    /// What forward error correction corrected.
    pub fec: bool,
}

/// The optional counters that an agent announces, in PortSamplesControl's OptionMask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Options {
    /// Not known yet: PortSamplesControl is still to be read.
    #[default]
    Pending,
    /// Nothing is announced: the agent has no PortSamplesControl, or an OptionMask of zero.
    Unannounced,
    /// This OptionMask.
    Announced(u64),
}

impl Options {
    /// What an OptionMask says; zero says nothing.
    pub fn of_mask(mask: u64) -> Self {
        if mask == 0 { Options::Unannounced } else { Options::Announced(mask) }
    }

    /// Whether a place may hold a counter, as far as options say.
    pub fn allow(self, needs: Needs) -> bool {
        match (self, needs) {
            (Options::Announced(mask), Needs::Option(bit)) => mask >> bit & 1 == 1,
            _ => true,
        }
    }
}

/// What is known of an agent, from which its plan follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Offer {
    /// What ClassPortInfo says.
    pub capabilities: Capabilities,
    /// What PortSamplesControl says.
    pub options: Options,
    /// Whether it answers for the ports of a switch.
    pub is_switch: bool,
    /// Optional attributes that it refused.
    pub refused: Vec<Attribute>,
}

/// One attribute to ask for, and the counters to take from its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The attribute.
    pub attribute: Attribute,
    /// The counters to take from its answer.
    pub counters: Vec<(Counter, Place)>,
    /// A second source: its counters stand in PortCountersExtended too, which may leave them at 0.
    pub is_second: bool,
}

impl Page {
    /// Whether the agent may refuse it: then it is not asked for it again.
    pub fn is_optional(&self) -> bool {
        // A bit announces PortExtendedSpeedsCounters, but the bit came after the attribute.
        self.is_second
            || self.is_detail()
            || self.attribute == Attribute::PortExtendedSpeedsCounters
    }

    /// Whether it holds the causes of errors or discards.
    pub fn is_detail(&self) -> bool {
        matches!(self.attribute, Attribute::PortRcvErrorDetails | Attribute::PortXmitDiscardDetails)
    }

    /// Whether it means something only on a link with Reed-Solomon error correction: on others the
    /// same bytes are reserved, or another layout's.
    pub fn is_for_reed_solomon(&self) -> bool {
        self.attribute == Attribute::PortExtendedSpeedsCounters
    }

    /// Takes the counters of an answer down, and which of their fields are full.
    pub fn read(&self, answer: &Mad, reading: &mut Reading<Raw>) {
        for &(counter, place) in &self.counters {
            let value = place.read(answer.data());
            reading.set(counter, value);
            if place.is_full_at(value) {
                reading.set_stuck(counter);
            }
        }
    }
}

/// What to ask each port of a device for: as few attributes as hold every counter it has.
///
/// The bit that announces 64-bit error counters cannot be trusted field by field: on ConnectX-7
/// (firmware 28.40 and 28.41) SymbolErrorCounter and LinkDownedCounter of PortCountersExtended stay
/// 0 while those of PortCounters count (15 of 15 non-zero values of 256 ports). So PortCounters is
/// read as well, except from switches: Quantum-2 fills both alike.
pub fn plan(offer: &Offer, extras: Extras) -> Vec<Page> {
    let Offer { capabilities, options, is_switch, refused } = offer;
    let mut attributes = Vec::new();
    // Before the 64-bit counters: what is counted between the two answers then shows there, and
    // does not make the 64-bit field look unused.
    let has_second = capabilities.has_extended_errors() && !is_switch;
    if has_second || !capabilities.has_extended_errors() {
        attributes.push(Attribute::PortCounters);
    }
    if capabilities.has_extended() {
        attributes.push(Attribute::PortCountersExtended);
    }
    if extras.fec && capabilities.meets(Needs::RsFec) {
        attributes.push(Attribute::PortExtendedSpeedsCounters);
    }
    let details = match extras.details {
        Details::Never => false,
        Details::Every(_) => matches!(options, Options::Announced(_)),
        Details::EachSweep => *options != Options::Pending,
    };
    if details {
        attributes.extend([Attribute::PortRcvErrorDetails, Attribute::PortXmitDiscardDetails]);
    }
    attributes.retain(|attribute| !refused.contains(attribute));
    let is_there = |place: &Place| capabilities.meets(place.needs) && options.allow(place.needs);
    let widest = |row: &Row| {
        let mut places = row.places.iter();
        places.find(|&place| attributes.contains(&place.attribute) && is_there(place)).copied()
    };
    let second = |row: &Row| {
        let is_error = row.kind != Kind::Traffic;
        let place = row.places.iter().find(|place| place.attribute == Attribute::PortCounters);
        place.filter(|&place| is_error && is_there(place)).copied()
    };
    let pages = attributes.iter().map(|&attribute| {
        let is_second = has_second && attribute == Attribute::PortCounters;
        let place = |row: &Row| {
            let place = if is_second { second(row) } else { widest(row) };
            place.filter(|place| place.attribute == attribute)
        };
        let counters = TABLE.iter().filter_map(|row| Some((row.counter, place(row)?))).collect();
        Page { attribute, counters, is_second }
    });
    pages.filter(|page| !page.counters.is_empty()).collect()
}

attribute! {
    /// PortSamplesControl (IBTA 1.4, 16.1.3.2): the sampling of a port's counters. PortSelect is
    /// the request's, and stays as it is.
    pub struct PortSamplesControl = 0x0010 {
        /// OpCode.
        op_code: u8 = byte(0),
        /// Tick: a tick of the sampling, and of PortXmitWait, is this + 1 symbol times.
        tick: u8 = byte(2),
        /// CounterWidth.
        counter_width: u8 = bits(3 * 8 + 5, 3),
        /// CounterMask0.
        counter_mask0: u8 = bits(4 * 8 + 2, 3),
        /// CounterMasks1to9, three bits each.
        counter_masks1: u32 = bits(4 * 8 + 5, 27),
        /// CounterMasks10to14, three bits each.
        counter_masks10: u16 = bits(8 * 8 + 1, 15),
        /// SampleMechanisms.
        sample_mechanisms: u8 = byte(10),
        /// SampleStatus.
        sample_status: u8 = bits(11 * 8 + 6, 2),
        /// OptionMask: which counters and which other attributes the port has.
        option_mask: u64 = bytes(12, 8),
        /// VendorMask.
        vendor_mask: u64 = bytes(20, 8),
        /// SampleStart, in ticks.
        sample_start: u32 = bytes(28, 4),
        /// SampleInterval, in ticks.
        sample_interval: u32 = bytes(32, 4),
        /// Tag.
        tag: u16 = bytes(36, 2),
        /// CounterSelect0 to 14.
        counter_select: [u16; 15] = bytes(38, 2),
        /// SamplesOnlyOptionMask.
        samples_only_option_mask: u64 = bytes(72, 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LEN;
    use crate::Moment;

    const DETAILS: Extras = Extras { details: Details::EachSweep, fec: false };
    const FEC: Extras = Extras { details: Details::Never, fec: true };
    /// As ConnectX-7 and Quantum-2 were seen to answer.
    const CONNECTX_7: u64 = 0x01a6_0000_10cc_33c0;
    const QUANTUM_2: u64 = 0x0180_0000_008c_f7fc;

    /// A switch without options.
    fn offer(mask: u16, mask2: u32) -> Offer {
        let capabilities = Capabilities { mask, mask2 };
        let options = Options::Unannounced;
        Offer { capabilities, options, is_switch: true, refused: Vec::new() }
    }

    fn names(offer: &Offer, extras: Extras) -> Vec<&'static str> {
        plan(offer, extras).iter().map(|page| page.attribute.name()).collect()
    }

    fn attributes(mask: u16, mask2: u32, extras: Extras) -> Vec<&'static str> {
        names(&offer(mask, mask2), extras)
    }

    #[test]
    fn a_node_that_is_no_switch_has_a_second_source_for_all_but_traffic() {
        let hca = Offer { is_switch: false, ..offer(0x5300, 2) };
        assert_eq!(names(&hca, Extras::default()), ["PortCounters", "PortCountersExtended"]);
        let pages = plan(&hca, Extras::default());
        assert_eq!((pages[0].is_second, pages[1].is_second), (true, false));
        let of = |page: usize, counter| pages[page].counters.iter().any(|(of, _)| *of == counter);
        for (counter, wide, narrow) in [
            (Counter::SymbolErrors, true, true),
            (Counter::LinkDowned, true, true),
            (Counter::XmitWait, true, true),
            (Counter::XmitData, true, false),
            (Counter::RcvPkts, true, false),
            (Counter::UnicastRcvPkts, true, false),
            // Not announced.
            (Counter::Qp1Dropped, false, false),
        ] {
            assert_eq!((of(1, counter), of(0, counter)), (wide, narrow), "{counter:?}");
        }
        // One that refused it is read by 64 bits alone.
        let refused = Offer { refused: vec![Attribute::PortCounters], ..hca };
        assert_eq!(names(&refused, Extras::default()), ["PortCountersExtended"]);
        // Without 64-bit errors there is only one source.
        let old = Offer { is_switch: false, ..offer(0x1200, 0) };
        assert!(plan(&old, Extras::default()).iter().all(|page| !page.is_second));
    }

    #[test]
    fn only_announced_fields_are_read() {
        use Counter as C;
        let details = |options| -> Vec<Counter> {
            let offer = Offer { options, ..offer(0x5300, 2) };
            let pages = plan(&offer, DETAILS);
            let details = pages.iter().filter(|page| page.is_detail());
            details.flat_map(|page| &page.counters).map(|(counter, _)| *counter).collect()
        };
        let receive = [C::RcvLocalPhysicalErrors, C::RcvMalformedPacketErrors];
        let receive =
            [&receive[..], &[C::RcvBufferOverrunErrors, C::RcvDlidMappingErrors]].concat();
        let discards = [C::XmitInactiveDiscards, C::XmitNeighborMtuDiscards];
        let late = [C::XmitLifetimeLimitDiscards, C::XmitHoqLimitDiscards];
        assert_eq!(details(Options::Pending), []);
        assert_eq!(details(Options::of_mask(CONNECTX_7)), [&receive[..], &discards].concat());
        let vl = [C::RcvVlMappingErrors];
        let switch = [&receive[..], &vl, &discards, &late].concat();
        assert_eq!(details(Options::of_mask(QUANTUM_2)), switch);
        let all = [&receive[..], &vl, &[C::RcvLoopingErrors], &discards, &late].concat();
        assert_eq!(details(Options::of_mask(0)), all, "a mask of zero announces nothing");
        // An attribute of which nothing is announced is not asked for.
        assert_eq!(details(Options::of_mask(1 << 12)), [C::XmitInactiveDiscards]);
        let one = Offer { options: Options::of_mask(1 << 12), ..offer(0x5300, 2) };
        assert_eq!(names(&one, DETAILS), ["PortCountersExtended", "PortXmitDiscardDetails"]);
    }

    #[test]
    fn details_at_an_interval_are_asked_only_where_they_are_announced() {
        let slow =
            Extras { details: Details::Every(Duration::from_secs(120)), ..Extras::default() };
        for (options, details) in [
            (Options::Pending, false),
            (Options::Unannounced, false),
            (Options::of_mask(QUANTUM_2), true),
            (Options::of_mask(1 << 23), false),
        ] {
            let offer = Offer { options, ..offer(0x5300, 2) };
            let has = plan(&offer, slow).iter().any(Page::is_detail);
            assert_eq!(has, details, "{options:?}");
        }
    }

    #[test]
    fn as_few_attributes_as_tell_all() {
        let usual = Extras::default();
        assert_eq!(attributes(0x5300, 2, usual), ["PortCountersExtended"]);
        assert_eq!(attributes(0x1200, 0, usual), ["PortCounters", "PortCountersExtended"]);
        assert_eq!(attributes(0x0400, 0, usual), ["PortCounters", "PortCountersExtended"]);
        assert_eq!(attributes(0, 0, usual), ["PortCounters"]);
        assert_eq!(
            attributes(0x5300, 2, DETAILS),
            ["PortCountersExtended", "PortRcvErrorDetails", "PortXmitDiscardDetails"]
        );
        assert_eq!(
            attributes(0x5300, 2, FEC),
            ["PortCountersExtended", "PortExtendedSpeedsCounters"]
        );
        assert_eq!(attributes(0x1200, 0, FEC), ["PortCounters", "PortCountersExtended"]);
    }

    #[test]
    fn data_is_taken_from_64_bits_where_there_are_any_and_errors_from_where_they_are() {
        let page_of = |mask, mask2, counter| {
            plan(&offer(mask, mask2), Extras::default())
                .into_iter()
                .find(|page| page.counters.iter().any(|(of, _)| *of == counter))
                .map(|page| page.attribute.name())
        };
        assert_eq!(page_of(0x1200, 0, Counter::XmitData), Some("PortCountersExtended"));
        assert_eq!(page_of(0x1200, 0, Counter::SymbolErrors), Some("PortCounters"));
        assert_eq!(page_of(0x5300, 2, Counter::SymbolErrors), Some("PortCountersExtended"));
        assert_eq!(page_of(0, 0, Counter::XmitData), Some("PortCounters"));
        assert_eq!(page_of(0, 0, Counter::XmitWait), None, "not kept");
        assert_eq!(page_of(0x0400, 0, Counter::UnicastRcvPkts), None, "not kept");
        assert_eq!(page_of(0x1200, 0, Counter::Qp1Dropped), None, "not kept");
        assert_eq!(page_of(0x9200, 0, Counter::Qp1Dropped), Some("PortCounters"));
    }

    #[test]
    fn samples_control_tells_the_tick_beside_the_port() {
        let mut answer = Mad::get(&class_port_info(), None, 1);
        answer.0[65] = 36;
        PortSamplesControl { tick: 31, counter_width: 5, ..PortSamplesControl::default() }
            .encode(&mut answer);
        assert_eq!(answer.data()[..5], [0, 36, 31, 5, 0]);
        assert_eq!(PortSamplesControl::decode(&answer).tick, 31);
        for (field, told) in [
            ([0x38, 0, 0, 0, 0, 0, 0, 0], (7, 0, 0, 0, 0)),
            ([0x07, 0xff, 0xff, 0xff, 0, 0, 0, 0], (0, 0x07ff_ffff, 0, 0, 0)),
            ([0, 0, 0, 0, 0x7f, 0xff, 0, 0], (0, 0, 0x7fff, 0, 0)),
            ([0, 0, 0, 0, 0, 0, 0xab, 0x03], (0, 0, 0, 0xab, 3)),
        ] {
            let mut answer = Mad([0; LEN]);
            answer.data_mut()[4..12].copy_from_slice(&field);
            let control = PortSamplesControl::decode(&answer);
            let (mask0, masks1) = (control.counter_mask0, control.counter_masks1);
            let (mechanisms, status) = (control.sample_mechanisms, control.sample_status);
            assert_eq!((mask0, masks1, control.counter_masks10, mechanisms, status), told);
        }
    }

    #[test]
    fn an_answer_becomes_a_reading() {
        let mut answer = Mad([0; LEN]);
        answer.0[64 + 4..64 + 6].copy_from_slice(&4242u16.to_be_bytes());
        answer.0[64 + 7] = 3;
        answer.0[64 + 19] = 0x2f;
        let mut reading = Reading::empty(Moment(5));
        plan(&offer(0, 0), Extras::default())[0].read(&answer, &mut reading);
        for (counter, value) in [
            (Counter::SymbolErrors, Some(4242)),
            (Counter::LinkDowned, Some(3)),
            (Counter::LocalLinkIntegrityErrors, Some(2)),
            (Counter::ExcessiveBufferOverrunErrors, Some(15)),
            (Counter::XmitData, Some(0)),
            (Counter::XmitWait, None),
        ] {
            assert_eq!(reading.get(counter), value, "{counter:?}");
        }
    }
    #[test]
    fn a_narrow_field_at_its_highest_value_is_stuck_and_a_wide_one_is_not() {
        let mut answer = Mad([0xff; LEN]);
        answer.0[64 + 7] = 0xfe;
        let mut reading = Reading::empty(Moment(5));
        // Errors from 4 to 16 bits, traffic and XmitWait; then traffic in 64 bits.
        plan(&offer(0x1000, 0), DETAILS)[0].read(&answer, &mut reading);
        assert!(!reading.is_stuck(Counter::LinkDowned), "one below");
        for counter in [
            Counter::SymbolErrors,
            Counter::LinkErrorRecoveries,
            Counter::LocalLinkIntegrityErrors,
            Counter::XmitWait,
            Counter::RcvData,
        ] {
            assert!(reading.is_stuck(counter), "{counter:?}");
        }
        let mut reading = Reading::empty(Moment(5));
        for page in plan(&offer(0x5300, 2), FEC) {
            page.read(&answer, &mut reading);
        }
        assert_eq!(reading.get(Counter::RcvData), Some(u64::MAX));
        assert!(!reading.is_stuck(Counter::RcvData) && !reading.is_stuck(Counter::SymbolErrors));
        assert_eq!(reading.get(Counter::FecCorrectedSymbols), Some(u32::MAX.into()));
        assert!(reading.is_stuck(Counter::FecCorrectedSymbols));
    }

    #[test]
    fn what_was_corrected_stands_where_libibmad_has_it() {
        let mut answer = Mad([0; LEN]);
        crate::extended_speeds::PortExtendedSpeedsCounters {
            port_corrected_blocks: 5,
            port_uncorrectable_blocks: 6,
            port_corrected_symbols: 7,
            ..Default::default()
        }
        .encode(&mut answer);
        let mut reading = Reading::empty(Moment(5));
        let plan = plan(&offer(0x5300, 2), FEC);
        let page = plan.iter().find(|page| page.is_for_reed_solomon()).unwrap();
        assert!(page.is_optional());
        page.read(&answer, &mut reading);
        assert_eq!(reading.get(Counter::FecCorrectedBlocks), Some(5));
        assert_eq!(reading.get(Counter::FecUncorrectableBlocks), Some(6));
        assert_eq!(reading.get(Counter::FecCorrectedSymbols), Some(7));
        assert_eq!(reading.get(Counter::RcvData), None);
    }
}
