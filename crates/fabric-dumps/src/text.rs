//! The words of dumps: numbers, GUIDs, widths, speeds, states, FEC modes, times.

use std::time::SystemTime;

use ib_mad::Guid;
use ib_mad::fec::Fec;
use ib_mad::node::NodeKind;
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, SpeedSet, Width};

/// A text in parts: before the first `open`, between it and the last `close`, and after that.
pub fn enclosed(text: &str, open: char, close: char) -> Option<[&str; 3]> {
    let (from, to) = (text.find(open)?, text.rfind(close)?);
    (from < to).then(|| [&text[..from], &text[from + 1..to], &text[to + 1..]])
}

/// What follows a name such as `GUID=` in one of some words; empty if none begins with it.
pub fn field<'a>(words: impl IntoIterator<Item = &'a str>, name: &str) -> &'a str {
    words.into_iter().find_map(|word| word.strip_prefix(name)).unwrap_or_default()
}

/// A GUID in hexadecimal digits, with or without `0x` and leading zeros; 0 is none.
pub fn guid(text: &str) -> Option<Guid> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let is_hex =
        (1..=16).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_hexdigit());
    let guid = is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten()?;
    (guid != 0).then_some(Guid(guid))
}

/// A GUID with all of its 16 digits, as ibdiagnet writes it: with fewer ones it was cut off.
pub fn whole_guid(text: &str) -> Option<Guid> {
    guid(text).filter(|_| text.trim().trim_start_matches("0x").len() == 16)
}

/// How far the GUIDs of an adapter and its ports may be apart: they are numbered from that of the adapter on (public
/// dumps of ConnectX-2 to ConnectX-7 and of InfiniHost). Others are joined by LIDs and descriptions.
pub const NEAR: u64 = 16;

/// Whether GUIDs may be of the ports of one adapter.
pub fn is_near(one: Guid, two: Guid) -> bool {
    one.0.abs_diff(two.0) <= NEAR
}

/// Whether a LID is one that a port can have.
pub fn is_unicast(lid: u16) -> bool {
    (1..0xc000).contains(&lid)
}

/// A LID, decimal; one outside the range of unicast LIDs is none.
pub fn lid(text: &str) -> Option<u16> {
    text.trim().parse().ok().filter(|lid| is_unicast(*lid))
}

/// A number, decimal or hexadecimal with `0x`.
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A width: `4x`, `4X`.
pub fn width(text: &str) -> Option<Width> {
    let text = text.trim().to_ascii_lowercase();
    Width::from_label(&text)
}

/// The speed of a lane: its name, or its rate in Gb/s as ibdiagnet and iblinkinfo write it.
pub fn speed(text: &str) -> Option<Speed> {
    let text = text.trim();
    Speed::from_label(text).or(match text {
        "2.5" => Some(Speed::Sdr),
        "5" | "5.0" => Some(Speed::Ddr),
        "10" | "10.0" => Some(Speed::Qdr),
        "FDR10" | "10.0 (FDR10)" => Some(Speed::Fdr10),
        "14" | "14.0625" => Some(Speed::Fdr),
        "25" | "25.78125" => Some(Speed::Edr),
        "50" | "53.125" => Some(Speed::Hdr),
        "100" | "106.25" => Some(Speed::Ndr),
        "200" | "212.5" => Some(Speed::Xdr),
        _ => None,
    })
}

/// Width and speed: `4xEDR`, `4x EDR`.
pub fn rate(text: &str) -> (Option<Width>, Option<Speed>) {
    let text = text.trim();
    match text.find(['x', 'X']) {
        Some(at) => (width(&text[..=at]), speed(&text[at + 1..])),
        None => (None, None),
    }
}

/// LinkSpeed fields as ibdiagnet packs them (a comment in `*.db_csv`): the first byte is of SDR to QDR, the second of
/// FDR on, the third of FDR10.
pub fn packed_speeds(value: u64) -> SpeedSet {
    let bits = [
        (0, Speed::Sdr),
        (1, Speed::Ddr),
        (2, Speed::Qdr),
        (8, Speed::Fdr),
        (9, Speed::Edr),
        (10, Speed::Hdr),
        (11, Speed::Ndr),
        (12, Speed::Xdr),
        (16, Speed::Fdr10),
    ];
    bits.into_iter().filter(|(bit, _)| value >> bit & 1 == 1).map(|(_, speed)| speed).collect()
}

/// The state of a port: `ACT`, `Active`, `4`.
pub fn port_state(text: &str) -> Option<PortState> {
    match text.trim().to_ascii_lowercase().as_str() {
        "act" | "active" => Some(PortState::Active),
        "armed" | "arm" => Some(PortState::Armed),
        "ini" | "init" | "initialize" => Some(PortState::Init),
        "down" | "dow" => Some(PortState::Down),
        _ => None,
    }
}

/// The physical state of a port: `LINK UP`, `LinkUp`, `POLL`.
pub fn physical_state(text: &str) -> Option<PhysicalState> {
    match text.trim().replace([' ', '_'], "").to_ascii_lowercase().as_str() {
        "linkup" => Some(PhysicalState::LinkUp),
        "poll" | "polling" => Some(PhysicalState::Polling),
        "disable" | "disabled" => Some(PhysicalState::Disabled),
        "sleep" => Some(PhysicalState::Sleep),
        "training" | "portconfigurationtraining" => Some(PhysicalState::Training),
        "linkerrorrecovery" | "recovery" => Some(PhysicalState::LinkErrorRecovery),
        "phytest" | "test" => Some(PhysicalState::PhyTest),
        _ => None,
    }
}

/// A FEC mode as ibdiagnet names it, or its code.
pub fn fec(text: &str) -> Option<Fec> {
    let text = text.trim().to_ascii_uppercase().replace('-', "_");
    if let Some(code) = number(&text.to_ascii_lowercase()) {
        return Fec::from_discriminant(u16::try_from(code).ok()?);
    }
    Some(match text.as_str() {
        "NO_FEC" => Fec::None,
        "FIRE_FEC" | "FIRECODE" | "FIRE_CODE" => Fec::FireCode,
        "RS_FEC" | "RS_FEC_528_514" => Fec::ReedSolomon,
        "LL_RS_FEC" | "RS_FEC_271_257" | "LL_FEC" => Fec::LowLatency,
        "RS_FEC_544_514" => Fec::ReedSolomon2,
        "MLNX_STRONG_RS_FEC" => Fec::StrongReedSolomon,
        "MLNX_LL_RS_FEC" => Fec::MellanoxLowLatency,
        "MLNX_ADAPT_RS_FEC" => Fec::Adaptive,
        "MLNX_COD_FEC" => Fec::Cod,
        "MLNX_ZL_FEC" => Fec::ZeroLatency,
        "MLNX_RS_544_514_PLR" => Fec::Rs544Plr,
        "MLNX_RS_271_257_PLR" => Fec::Rs271Plr,
        _ => return None,
    })
}

/// A kind of node: `SW`, `Switch`, `CA`, `Ca`, `Hca`, `RT`, `Rt`.
pub fn kind(text: &str) -> Option<NodeKind> {
    match text {
        "SW" | "Switch" => Some(NodeKind::Switch),
        "CA" | "Ca" | "Hca" => Some(NodeKind::Ca),
        "RT" | "Rt" => Some(NodeKind::Router),
        _ => None,
    }
}

/// A time as ibdiagnet writes it, `2025-03-31 23:43:18 CEST +0200`, or ibnetdiscover, `Tue Feb 23 14:02:06 2021`, which
/// has no zone: then UTC is assumed. The offset counts: names of zones are ambiguous (IST is +0200 and +0530).
pub fn time(text: &str) -> Option<SystemTime> {
    let mut words: Vec<&str> = text.trim().trim_matches('"').split_whitespace().collect();
    let offset = words.last().and_then(|word| offset_seconds(word));
    if offset.is_some() {
        words.pop();
    }
    let is_zone = |word: &&&str| word.len() > 1 && word.chars().all(|it| it.is_ascii_uppercase());
    if words.last().as_ref().is_some_and(is_zone) {
        words.pop();
    }
    let text = words.join(" ");
    let formats = ["%Y-%m-%d %H:%M:%S", "%a %b %d %H:%M:%S %Y"];
    let parsed =
        formats.iter().find_map(|format| jiff::civil::DateTime::strptime(format, &text).ok())?;
    let zone = jiff::tz::Offset::from_seconds(offset.unwrap_or(0)).ok()?;
    let at = SystemTime::from(zone.to_timestamp(parsed).ok()?);
    // No tool is that old.
    at.duration_since(SystemTime::UNIX_EPOCH).is_ok().then_some(at)
}

/// The time in a comment of ibdiagnet: `# Running timestamp : 2025-03-31 23:43:18 UTC +0000`.
pub fn running_timestamp(line: &str) -> Option<SystemTime> {
    let comment = line.strip_prefix('#')?;
    let (_, at) =
        comment.split_once("Running timestamp").or_else(|| comment.split_once("Timestamp"))?;
    time(at.trim_start_matches([' ', ':']))
}

/// The seconds of an offset from UTC such as `+0530`.
fn offset_seconds(word: &str) -> Option<i32> {
    let (sign, digits) = match word.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let is_offset = digits.len() == 4 && digits.bytes().all(|it| it.is_ascii_digit());
    let (hours, minutes) = digits.split_at_checked(2).filter(|_| is_offset)?;
    Some(sign * (hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60))
}

/// The bytes of a NodeDescription (IBTA 14.2.5.2). A file may have any number.
const MAX_DESCRIPTION: usize = 64;

/// A description without blanks around it and what a terminal would act on, at most as long as that of a device.
pub fn description(text: &str) -> String {
    let text = text.trim();
    let mut end = text.len().min(MAX_DESCRIPTION);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    ib_mad::node::readable_description(&text.as_bytes()[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn description_is_at_most_as_long_as_that_of_a_device() {
        assert_eq!(description(" rack \"A\" "), "rack \"A\"");
        assert_eq!(description(&"x".repeat(50 << 20)), "x".repeat(64));
        // Never half of a character.
        assert_eq!(description(&format!("{}é", "x".repeat(63))), "x".repeat(63));
    }

    #[test]
    fn words_of_all_tools_are_read() {
        assert_eq!(guid("0x2c9030042dff1"), Some(Guid(0x0002_c903_0042_dff1)));
        for text in ["", "0x", "0", "0xswitch1", "22222222222host2", "123456789012345678"] {
            assert_eq!(guid(text), None, "{text}");
        }
        assert_eq!(["12", "65535", "0", "-1", ""].map(lid), [Some(12), None, None, None, None]);
        assert_eq!(rate("4xNDR"), (Some(Width::X4), Some(Speed::Ndr)));
        assert_eq!(rate("4x ???"), (Some(Width::X4), None));
        assert_eq!(rate("12X 5.0"), (Some(Width::X12), Some(Speed::Ddr)));
        assert_eq!(rate(""), (None, None));
        assert_eq!(packed_speeds(2052).fastest(), Some(Speed::Ndr));
        assert_eq!(packed_speeds(0).fastest(), None);
        assert_eq!(fec("RS_FEC_544_514"), Some(Fec::ReedSolomon2));
        assert_eq!(
            (fec("14"), fec("0x04"), fec("N/A")),
            (Some(Fec::Rs271Plr), Some(Fec::ReedSolomon2), None)
        );
        assert_eq!(physical_state("LINK UP"), Some(PhysicalState::LinkUp));
    }

    #[test]
    fn times_of_all_tools_are_read() {
        let expected = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_743_464_598));
        assert_eq!(time("2025-03-31 23:43:18 UTC +0000"), expected);
        assert_eq!(time("Mon Mar 31 23:43:18 2025"), expected);
        for zoned in [
            "2025-04-01 01:43:18 IST +0200",
            "2025-04-01 05:13:18 IST +0530",
            "2025-03-31 18:43:18 EST -0500",
        ] {
            assert_eq!(time(zoned), expected, "{zoned}");
        }
        assert!(time("Tue Feb  2 04:02:06 2021").is_some());
        assert_eq!(time("yesterday"), None);
    }
}
