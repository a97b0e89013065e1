//! Performance management: which attributes to ask a port for, and what its answers hold.

use crate::fabric::counter::{Attribute, Counter, Needs, Place, TABLE};
use crate::fabric::{PortNumber, Reading};

use super::class_port_info::{self, Capabilities};
use super::layout::{attribute, bits, byte, bytes};
use super::{Mad, Query};

const fn query(attribute: u16, port_select: PortNumber) -> Query {
    Query { subnet: false, attribute, modifier: 0, port_select, clear: None }
}

/// Asks what a device's agent can do.
pub fn class_port_info() -> Query {
    query(class_port_info::ID, 0)
}

/// Asks for counters of one port.
pub fn counters(attribute: Attribute, port: PortNumber) -> Query {
    query(attribute as u16, port)
}

/// Asks how an agent samples a port, of which the tick is what matters.
pub fn samples_control(port: PortNumber) -> Query {
    query(PortSamplesControl::ID, port)
}

/// What ports are asked for beside the counters that every fabric is watched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Extras {
    /// The causes of errors and discards.
    pub details: bool,
    /// What forward error correction had to mend.
    pub fec: bool,
}

/// One attribute to ask for, and the counters to take from its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The attribute.
    pub attribute: Attribute,
    /// The counters that no wider place of the same plan holds.
    pub counters: Vec<(Counter, Place)>,
}

impl Page {
    /// Whether ClassPortInfo does not say if a device has it: asking is the way to find out.
    pub fn is_optional(&self) -> bool {
        // That of the error correction is told of by a bit of its own, but by one that came after it.
        matches!(
            self.attribute,
            Attribute::PortRcvErrorDetails
                | Attribute::PortXmitDiscardDetails
                | Attribute::PortExtendedSpeedsCounters
        )
    }

    /// Whether it means something only on a link with Reed-Solomon error correction: on others the
    /// same bytes are reserved, or another layout's.
    pub fn is_for_reed_solomon(&self) -> bool {
        self.attribute == Attribute::PortExtendedSpeedsCounters
    }

    /// Takes the counters of an answer down, and which of their fields are full.
    pub fn read(&self, answer: &Mad, reading: &mut Reading) {
        for &(counter, place) in &self.counters {
            let value = place.read(answer.data());
            reading.set(counter, value);
            if place.is_full_at(value) {
                reading.set_stuck(counter);
            }
        }
    }
}

/// What to ask each port of a device for: as few attributes as tell every counter it has.
pub fn plan(capabilities: &Capabilities, extras: Extras) -> Vec<Page> {
    let mut attributes = Vec::new();
    if !capabilities.has_extended_errors() {
        attributes.push(Attribute::PortCounters);
    }
    if capabilities.has_extended() {
        attributes.push(Attribute::PortCountersExtended);
    }
    if extras.fec && capabilities.meets(Needs::RsFec) {
        attributes.push(Attribute::PortExtendedSpeedsCounters);
    }
    if extras.details {
        attributes.extend([Attribute::PortRcvErrorDetails, Attribute::PortXmitDiscardDetails]);
    }
    let place_of = |places: &[Place]| {
        places
            .iter()
            .find(|place| attributes.contains(&place.attribute) && capabilities.meets(place.needs))
            .copied()
    };
    let placed: Vec<(Counter, Place)> =
        TABLE.iter().filter_map(|row| Some((row.counter, place_of(row.places)?))).collect();
    attributes
        .iter()
        .map(|&attribute| Page {
            attribute,
            counters: placed
                .iter()
                .filter(|(_, place)| place.attribute == attribute)
                .copied()
                .collect(),
        })
        .collect()
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
    use crate::fabric::Moment;
    use crate::mad::LEN;

    const DETAILS: Extras = Extras { details: true, fec: false };
    const FEC: Extras = Extras { details: false, fec: true };

    fn attributes(mask: u16, mask2: u32, extras: Extras) -> Vec<&'static str> {
        plan(&Capabilities { mask, mask2 }, extras)
            .iter()
            .map(|page| page.attribute.name())
            .collect()
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
            plan(&Capabilities { mask, mask2 }, Extras::default())
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
        plan(&Capabilities { mask: 0, mask2: 0 }, Extras::default())[0].read(&answer, &mut reading);
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
        plan(&Capabilities { mask: 0x1000, mask2: 0 }, DETAILS)[0].read(&answer, &mut reading);
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
        for page in plan(&Capabilities { mask: 0x5300, mask2: 2 }, FEC) {
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
        crate::mad::fec::PortExtendedSpeedsCounters {
            port_corrected_blocks: 5,
            port_uncorrectable_blocks: 6,
            port_corrected_symbols: 7,
            ..Default::default()
        }
        .encode(&mut answer);
        let mut reading = Reading::empty(Moment(5));
        let plan = plan(&Capabilities { mask: 0x5300, mask2: 2 }, FEC);
        let page = plan.iter().find(|page| page.is_for_reed_solomon()).unwrap();
        assert!(page.is_optional());
        page.read(&answer, &mut reading);
        assert_eq!(reading.get(Counter::FecCorrectedBlocks), Some(5));
        assert_eq!(reading.get(Counter::FecUncorrectableBlocks), Some(6));
        assert_eq!(reading.get(Counter::FecCorrectedSymbols), Some(7));
        assert_eq!(reading.get(Counter::RcvData), None);
    }
}
