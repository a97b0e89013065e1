//! Performance management (PerfMgt): which attributes to read of a port, and decoding of the responses.

use std::time::Duration;

use crate::class_port_info::{ClassPortInfo, PmaCapabilities};
use crate::clear::{Clear, CounterSelect};
use crate::counter::{Attribute, Counter, CounterField, CounterKind, CounterRow, Needs, TABLE};
use crate::ids::PortNumber;
use crate::layout::{attribute, byte, bytes};
use crate::mad::Mad;
use crate::query::Query;
use crate::reading::{Raw, Reading};

/// Reads ClassPortInfo of a device's agent.
pub fn class_port_info() -> Query {
    Query::performance(ClassPortInfo::ID, 0)
}

/// Reads counters of one port.
pub fn counters(attribute: Attribute, port: PortNumber) -> Query {
    Query::performance(attribute as u16, port)
}

/// Reads PortSamplesControl of a port: the tick, and the OptionMask.
pub fn samples_control(port: PortNumber) -> Query {
    Query::performance(PortSamplesControl::ID, port).optional()
}

/// Clears counters of one port, and no others.
pub fn clear_counters(port: PortNumber, select: CounterSelect) -> Query {
    Query { clear: Some(Clear::Counters(select)), ..counters(Attribute::PortCounters, port) }
}

/// Clears all error correction counters of one port.
pub fn clear_fec_counters(port: PortNumber) -> Query {
    let attribute = Attribute::PortExtendedSpeedsCounters;
    Query { clear: Some(Clear::FecCounters), ..counters(attribute, port) }
}

/// When error and discard details are read: PortRcvErrorDetails and PortXmitDiscardDetails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DetailPolicy {
    /// Never.
    #[default]
    Never,
    /// At this interval, from devices that announce them.
    Every(Duration),
    /// In each sweep, from every device that does not refuse them.
    EachSweep,
}

/// Counters that are read only if they are enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct OptionalCounters {
    pub details: DetailPolicy,
    pub fec: bool,
}

impl OptionalCounters {
    /// How many attributes hold error and discard details.
    pub fn detail_attributes(self) -> usize {
        if self.details == DetailPolicy::Never { 0 } else { 2 }
    }

    /// The most attributes that a [`read_plan`] can have.
    pub fn max_attributes(self) -> usize {
        // PortCounters and PortCountersExtended.
        2 + usize::from(self.fec) + self.detail_attributes()
    }
}

/// What is known of an agent; it determines the read plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct AgentProfile {
    pub capabilities: PmaCapabilities,
    /// OptionMask of PortSamplesControl, 0 without one; `None` until it is read.
    pub options: Option<u64>,
    pub is_switch: bool,
    pub refused: Vec<Attribute>,
}

/// One attribute to read, and the counters to take from the response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct AttributePlan {
    pub attribute: Attribute,
    pub counters: Vec<(Counter, CounterField)>,
    /// A fallback: PortCountersExtended has the same counters, but may leave them at 0.
    pub is_fallback: bool,
}

impl AttributePlan {
    /// Whether the agent may refuse the attribute, which then is not read again.
    pub fn is_optional(&self) -> bool {
        // PortExtendedSpeedsCounters is older than the bit that announces it.
        self.is_fallback || self.is_detail() || self.needs_reed_solomon()
    }

    /// Whether it holds error or discard details.
    pub fn is_detail(&self) -> bool {
        self.attribute.is_details()
    }

    /// Whether it is valid only with Reed-Solomon FEC: else its bytes are reserved, or have another layout.
    pub fn needs_reed_solomon(&self) -> bool {
        self.attribute == Attribute::PortExtendedSpeedsCounters
    }

    /// Copies the counters of a response into a reading, and marks saturated fields.
    pub fn read(&self, response: &Mad, reading: &mut Reading<Raw>) {
        for &(counter, field) in &self.counters {
            let value = field.read(response);
            reading.set(counter, value);
            if field.is_saturated(value) {
                reading.saturated.insert(counter);
            }
        }
    }
}

/// The attributes to read of each port of a device: as few as hold all of its counters.
///
/// The bit that announces 64-bit error counters is not reliable for each field: on ConnectX-7 (firmware
/// 28.40 and 28.41) SymbolErrorCounter and LinkDownedCounter of PortCountersExtended stay 0 while those
/// of PortCounters count (15 of 15 non-zero values of 256 ports). So PortCounters is read as well,
/// except from switches: Quantum-2 fills both.
pub fn read_plan(profile: &AgentProfile, optional: OptionalCounters) -> Vec<AttributePlan> {
    let AgentProfile { capabilities, options, is_switch, refused } = profile;
    let mut attributes = Vec::new();
    // PortCounters comes first: an event between the two responses then shows in the 64-bit field.
    let has_fallback = capabilities.has_extended_errors() && !is_switch;
    if has_fallback || !capabilities.has_extended_errors() {
        attributes.push(Attribute::PortCounters);
    }
    if capabilities.has_extended() {
        attributes.push(Attribute::PortCountersExtended);
    }
    if optional.fec && capabilities.meets(Needs::RsFec, 0) {
        attributes.push(Attribute::PortExtendedSpeedsCounters);
    }
    let details = match optional.details {
        DetailPolicy::Never => false,
        DetailPolicy::Every(_) => options.is_some_and(|mask| mask != 0),
        DetailPolicy::EachSweep => options.is_some(),
    };
    if details {
        attributes.extend([Attribute::PortRcvErrorDetails, Attribute::PortXmitDiscardDetails]);
    }
    attributes.retain(|attribute| !refused.contains(attribute));
    let exists = |field: &&CounterField| {
        attributes.contains(&field.attribute)
            && capabilities.meets(field.needs, options.unwrap_or(0))
    };
    let plans = attributes.iter().map(|&attribute| {
        let is_fallback = has_fallback && attribute == Attribute::PortCounters;
        let field = |row: &CounterRow| {
            let mut fields = row.fields.iter().filter(exists);
            // The widest; the fallback has the narrow fields of errors.
            let field = if !is_fallback {
                fields.next()
            } else if row.kind == CounterKind::Traffic {
                None
            } else {
                fields.next_back()
            };
            field.filter(|field| field.attribute == attribute).copied()
        };
        let counters = TABLE.iter().filter_map(|row| Some((row.counter, field(row)?))).collect();
        AttributePlan { attribute, counters, is_fallback }
    });
    plans.filter(|plan| !plan.counters.is_empty()).collect()
}

attribute! {
    /// PortSamplesControl (IBTA 1.4, 16.1.3.2): what it says of all counters. Its sampling of some is not used.
    pub struct PortSamplesControl = 0x0010 {
        tick: u8 = byte(2), "Tick: a tick of sampling and of PortXmitWait is this + 1 symbol times.";
        option_mask: u64 = bytes(12, 8), "OptionMask: counters and attributes that the port supports.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mad::LEN;
    use crate::moment::Moment;

    const DETAILS: OptionalCounters =
        OptionalCounters { details: DetailPolicy::EachSweep, fec: false };
    const FEC: OptionalCounters = OptionalCounters { details: DetailPolicy::Never, fec: true };
    /// OptionMasks of ConnectX-7 and Quantum-2, as observed.
    const CONNECTX_7: u64 = 0x01a6_0000_10cc_33c0;
    const QUANTUM_2: u64 = 0x0180_0000_008c_f7fc;

    /// A switch without options.
    fn profile(mask: u16, mask2: u32) -> AgentProfile {
        let capabilities = PmaCapabilities { mask, mask2 };
        let options = Some(0);
        AgentProfile { capabilities, options, is_switch: true, refused: Vec::new() }
    }

    fn names(profile: &AgentProfile, optional: OptionalCounters) -> Vec<&'static str> {
        read_plan(profile, optional).iter().map(|plan| plan.attribute.label()).collect()
    }

    fn attributes(mask: u16, mask2: u32, optional: OptionalCounters) -> Vec<&'static str> {
        names(&profile(mask, mask2), optional)
    }

    #[test]
    fn ca_reads_classic_fields_as_fallback() {
        let hca = AgentProfile { is_switch: false, ..profile(0x5300, 2) };
        assert_eq!(
            names(&hca, OptionalCounters::default()),
            ["PortCounters", "PortCountersExtended"]
        );
        let plans = read_plan(&hca, OptionalCounters::default());
        assert_eq!((plans[0].is_fallback, plans[1].is_fallback), (true, false));
        let of = |plan: usize, counter| plans[plan].counters.iter().any(|(of, _)| *of == counter);
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
        // After a refusal only the 64-bit counters are read.
        let refused = AgentProfile { refused: vec![Attribute::PortCounters], ..hca };
        assert_eq!(names(&refused, OptionalCounters::default()), ["PortCountersExtended"]);
        // Without 64-bit errors there is only one source.
        let old = AgentProfile { is_switch: false, ..profile(0x1200, 0) };
        assert!(read_plan(&old, OptionalCounters::default()).iter().all(|plan| !plan.is_fallback));
    }

    #[test]
    fn reads_only_announced_detail_fields() {
        use Counter as C;
        let details = |options| -> Vec<Counter> {
            let profile = AgentProfile { options, ..profile(0x5300, 2) };
            let plans = read_plan(&profile, DETAILS);
            let details = plans.iter().filter(|plan| plan.is_detail());
            details.flat_map(|plan| &plan.counters).map(|(counter, _)| *counter).collect()
        };
        let receive = [C::RcvLocalPhysicalErrors, C::RcvMalformedPacketErrors];
        let receive =
            [&receive[..], &[C::RcvBufferOverrunErrors, C::RcvDlidMappingErrors]].concat();
        let discards = [C::XmitInactiveDiscards, C::XmitNeighborMtuDiscards];
        let late = [C::XmitLifetimeLimitDiscards, C::XmitHoqLimitDiscards];
        assert_eq!(details(None), []);
        assert_eq!(details(Some(CONNECTX_7)), [&receive[..], &discards].concat());
        let vl = [C::RcvVlMappingErrors];
        let switch = [&receive[..], &vl, &discards, &late].concat();
        assert_eq!(details(Some(QUANTUM_2)), switch);
        let all = [&receive[..], &vl, &[C::RcvLoopingErrors], &discards, &late].concat();
        assert_eq!(details(Some(0)), all, "a mask of 0 announces nothing");
        // An attribute without announced counters is not read.
        assert_eq!(details(Some(1 << 12)), [C::XmitInactiveDiscards]);
        let one = AgentProfile { options: Some(1 << 12), ..profile(0x5300, 2) };
        assert_eq!(names(&one, DETAILS), ["PortCountersExtended", "PortXmitDiscardDetails"]);
    }

    #[test]
    fn interval_details_need_announcement() {
        let slow = OptionalCounters {
            details: DetailPolicy::Every(Duration::from_secs(120)),
            ..OptionalCounters::default()
        };
        for (options, details) in
            [(None, false), (Some(0), false), (Some(QUANTUM_2), true), (Some(1 << 23), false)]
        {
            let profile = AgentProfile { options, ..profile(0x5300, 2) };
            let has = read_plan(&profile, slow).iter().any(AttributePlan::is_detail);
            assert_eq!(has, details, "{options:?}");
        }
    }

    #[test]
    fn read_plan_uses_fewest_attributes() {
        let usual = OptionalCounters::default();
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
    fn read_plan_prefers_wide_fields() {
        let attribute_of = |mask, mask2, counter| {
            read_plan(&profile(mask, mask2), OptionalCounters::default())
                .into_iter()
                .find(|plan| plan.counters.iter().any(|(of, _)| *of == counter))
                .map(|plan| plan.attribute.label())
        };
        assert_eq!(attribute_of(0x1200, 0, Counter::XmitData), Some("PortCountersExtended"));
        assert_eq!(attribute_of(0x1200, 0, Counter::SymbolErrors), Some("PortCounters"));
        assert_eq!(attribute_of(0x5300, 2, Counter::SymbolErrors), Some("PortCountersExtended"));
        assert_eq!(attribute_of(0, 0, Counter::XmitData), Some("PortCounters"));
        assert_eq!(attribute_of(0, 0, Counter::XmitWait), None, "unsupported");
        assert_eq!(attribute_of(0x0400, 0, Counter::UnicastRcvPkts), None, "unsupported");
        assert_eq!(attribute_of(0x1200, 0, Counter::Qp1Dropped), None, "unsupported");
        assert_eq!(attribute_of(0x9200, 0, Counter::Qp1Dropped), Some("PortCounters"));
    }

    #[test]
    fn samples_control_field_by_field() {
        let mut response = class_port_info().request(None, 1);
        response.0[65] = 36;
        let control = PortSamplesControl { tick: 31, option_mask: CONNECTX_7 };
        control.encode(&mut response);
        assert_eq!(response.data()[..5], [0, 36, 31, 0, 0]);
        assert_eq!(response.be(64 + 12, 8), CONNECTX_7);
        assert_eq!(PortSamplesControl::decode(&response), control);
    }

    #[test]
    fn port_counters_response_decodes_to_reading() {
        let mut response = Mad([0; LEN]);
        response.0[64 + 4..64 + 6].copy_from_slice(&4242u16.to_be_bytes());
        response.0[64 + 7] = 3;
        response.0[64 + 19] = 0x2f;
        let mut reading = Reading::empty(Moment(5));
        read_plan(&profile(0, 0), OptionalCounters::default())[0].read(&response, &mut reading);
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
    fn narrow_field_saturates_wide_field_does_not() {
        let mut response = Mad([0xff; LEN]);
        response.0[64 + 7] = 0xfe;
        let mut reading = Reading::empty(Moment(5));
        // Errors from 4 to 16 bits, traffic and XmitWait; then traffic in 64 bits.
        read_plan(&profile(0x1000, 0), DETAILS)[0].read(&response, &mut reading);
        assert!(!reading.saturated.contains(Counter::LinkDowned), "one below");
        for counter in [
            Counter::SymbolErrors,
            Counter::LinkErrorRecoveries,
            Counter::LocalLinkIntegrityErrors,
            Counter::XmitWait,
            Counter::RcvData,
        ] {
            assert!(reading.saturated.contains(counter), "{counter:?}");
        }
        let mut reading = Reading::empty(Moment(5));
        for plan in read_plan(&profile(0x5300, 2), FEC) {
            plan.read(&response, &mut reading);
        }
        assert_eq!(reading.get(Counter::RcvData), Some(u64::MAX));
        assert!(
            !reading.saturated.contains(Counter::RcvData)
                && !reading.saturated.contains(Counter::SymbolErrors)
        );
        assert_eq!(reading.get(Counter::FecCorrectedSymbols), Some(u32::MAX.into()));
        assert!(reading.saturated.contains(Counter::FecCorrectedSymbols));
    }

    #[test]
    fn fec_counters_match_libibmad_offsets() {
        let mut response = Mad([0; LEN]);
        crate::fec::PortExtendedSpeedsCounters {
            port_corrected_blocks: 5,
            port_uncorrectable_blocks: 6,
            port_corrected_symbols: 7,
            ..Default::default()
        }
        .encode(&mut response);
        let mut reading = Reading::empty(Moment(5));
        let plans = read_plan(&profile(0x5300, 2), FEC);
        let plan = plans.iter().find(|plan| plan.needs_reed_solomon()).unwrap();
        assert!(plan.is_optional());
        plan.read(&response, &mut reading);
        assert_eq!(reading.get(Counter::FecCorrectedBlocks), Some(5));
        assert_eq!(reading.get(Counter::FecUncorrectableBlocks), Some(6));
        assert_eq!(reading.get(Counter::FecCorrectedSymbols), Some(7));
        assert_eq!(reading.get(Counter::RcvData), None);
    }
}
