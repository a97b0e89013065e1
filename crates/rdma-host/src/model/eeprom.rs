//! The memory of a cable or module, in the three layouts that NICs have: SFF-8472 (SFP), SFF-8636 (QSFP), and CMIS
//! (QSFP-DD, OSFP). Offsets are those of the specifications, as ethtool has them (`sfpid.c`, `qsfp.h`, `cmis.h`).

use ib_mad::register::{LANES, Module, monitor};

/// Half of a page: the kernel reads no more at once.
pub const HALF: usize = 128;

/// A half page: the lower one has the number 0 and the offset 0, upper ones the offset 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The I2C address: 0x50, or 0x51 for the diagnostics of an SFP.
    pub address: u8,
    /// The number of the page.
    pub number: u8,
    /// Its first byte: 0 or 128.
    pub offset: u8,
}

const fn upper(number: u8) -> Page {
    Page { address: 0x50, number, offset: 128 }
}

/// What identifies the layout; each read begins with it.
pub const FIRST: Page = Page { address: 0x50, number: 0, offset: 0 };

/// The layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Sfp,
    Qsfp,
    Cmis,
}

/// Layout and form factor by the identifier of SFF-8024, table 4-1. The form factor is that of PDDR.
const IDENTIFIERS: [(u8, Layout, u8); 9] = [
    (0x03, Layout::Sfp, 2),
    (0x0c, Layout::Qsfp, 1),
    (0x0d, Layout::Qsfp, 1),
    (0x11, Layout::Qsfp, 0),
    (0x18, Layout::Cmis, 6),
    (0x19, Layout::Cmis, 8),
    (0x1a, Layout::Cmis, 5),
    (0x1b, Layout::Cmis, 10),
    (0x1e, Layout::Cmis, 7),
];

fn layout(first: &[u8; HALF]) -> Option<(Layout, u8)> {
    let found = IDENTIFIERS.iter().find(|(identifier, ..)| *identifier == first[0])?;
    Some((found.1, found.2))
}

/// The pages that are read after the first one. Optional pages of flat memory do not exist.
pub fn further_pages(first: &[u8; HALF]) -> &'static [Page] {
    const SFP: [Page; 1] = [Page { address: 0x51, number: 0, offset: 0 }];
    const QSFP: [Page; 2] = [upper(0), upper(3)];
    const CMIS: [Page; 4] = [upper(0), upper(1), upper(2), upper(0x11)];
    match layout(first) {
        // Byte 92: without diagnostics there is no second address.
        Some((Layout::Sfp, _)) if first[92] & 0x40 == 0 => &[],
        Some((Layout::Sfp, _)) => &SFP,
        Some((Layout::Qsfp, _)) if first[2] & 0x04 != 0 => &QSFP[..1],
        Some((Layout::Qsfp, _)) => &QSFP,
        Some((Layout::Cmis, _)) if first[2] & 0x80 != 0 => &CMIS[..1],
        Some((Layout::Cmis, _)) => &CMIS,
        None => &[],
    }
}

/// A module by its first half page and the [further ones](further_pages), in the units of [`Module`]. `None` if the
/// layout is not known, or a page is missing.
pub fn decode(first: &[u8; HALF], further: &[[u8; HALF]]) -> Option<Module> {
    let (layout, identifier) = layout(first)?;
    let (module, powers) = match layout {
        Layout::Sfp => sfp(first, further.first()),
        Layout::Qsfp => qsfp(first, further.first()?, further.get(1)),
        Layout::Cmis => cmis(first, further.first()?, further.get(1..4)),
    };
    // Temperature and voltage are measured if they are not 0, the others as the module says.
    let has = |bit, value: u16| if value == 0 { 0 } else { bit };
    let monitors = powers
        | has(monitor::TEMPERATURE, module.temperature)
        | has(monitor::VOLTAGE, module.voltage);
    Some(Module { identifier, monitors, ..module })
}

fn text<const N: usize>(page: &[u8; HALF], at: usize) -> [u8; N] {
    let mut text = [0; N];
    if let Some(found) = page.get(at..at + N) {
        text.copy_from_slice(found);
    }
    text
}

fn word(page: &[u8; HALF], at: usize) -> u16 {
    u16::from_be_bytes(text(page, at))
}

/// A power: 0.1 microwatts in the memory, microwatts in [`Module`].
fn power(page: &[u8; HALF], at: usize) -> u16 {
    word(page, at).saturating_add(5) / 10
}

fn lanes(count: usize, value: impl Fn(usize) -> u16) -> [u16; LANES] {
    std::array::from_fn(|lane| if lane < count { value(lane) } else { 0 })
}

/// The alarm thresholds: pairs of a high and a low one, at these offsets in the order of the parameters' names.
fn thresholds(
    page: &[u8; HALF],
    [temperature, voltage, bias, tx_power, rx_power]: [usize; 5],
) -> Module {
    Module {
        temperature_high: word(page, temperature),
        temperature_low: word(page, temperature + 2),
        voltage_high: word(page, voltage),
        voltage_low: word(page, voltage + 2),
        bias_high: word(page, bias),
        bias_low: word(page, bias + 2),
        tx_power_high: power(page, tx_power),
        tx_power_low: power(page, tx_power + 2),
        rx_power_high: power(page, rx_power),
        rx_power_low: power(page, rx_power + 2),
        ..Module::default()
    }
}

/// The connector that cannot be separated from the cable (SFF-8024, table 4-3).
const NO_SEPARABLE_CONNECTOR: u8 = 0x23;

/// The kind of PDDR: 1 active cable, 2 optical module, 3 passive copper.
fn kind(is_copper: bool, is_active: bool, connector: u8) -> u8 {
    match (is_copper, is_active || connector == NO_SEPARABLE_CONNECTOR) {
        (true, false) => 3,
        (_, true) => 1,
        (false, false) => 2,
    }
}

/// An offset of the specification in the upper half of a page.
fn at(offset: usize) -> usize {
    offset - HALF
}

/// SFF-8472: identity at address 0x50, diagnostics at 0x51. Like the other layouts with the bits of the bias and the
/// powers that are measured.
fn sfp(first: &[u8; HALF], diagnostics: Option<&[u8; HALF]>) -> (Module, u8) {
    // Byte 8: bit 2 passive, bit 3 active copper. Byte 18: meters of copper.
    let (is_passive, is_active) = (first[8] & 0x04 != 0, first[8] & 0x08 != 0);
    let is_copper = is_passive || is_active;
    // Byte 92, bit 5: calibrated internally. Other values would need the module's own polynomials.
    let measured = diagnostics.filter(|_| first[92] & 0x20 != 0).map(|page| Module {
        temperature: word(page, 96),
        voltage: word(page, 98),
        tx_bias: lanes(1, |_| word(page, 100)),
        tx_power: lanes(1, |_| power(page, 102)),
        rx_power: lanes(1, |_| power(page, 104)),
        ..thresholds(page, [0, 8, 16, 24, 32])
    });
    let has_powers = measured.is_some() && !is_copper;
    let module = Module {
        kind: if is_passive { 3 } else { kind(is_copper, is_active, first[2]) },
        length_code: if is_copper { first[18] } else { 0 },
        vendor: text(first, 20),
        part_number: text(first, 40),
        revision: text(first, 56),
        serial_number: text(first, 68),
        wavelength: if is_copper { 0 } else { word(first, 60) },
        ..measured.unwrap_or_default()
    };
    let powers = monitor::TX_POWER | monitor::RX_POWER | monitor::BIAS;
    (module, if has_powers { powers } else { 0 })
}

/// SFF-8636: measurements in the lower half, identity in upper page 0, thresholds in upper page 3.
fn qsfp(first: &[u8; HALF], identity: &[u8; HALF], limits: Option<&[u8; HALF]>) -> (Module, u8) {
    // Byte 147, high half: 0xA and 0xB are passive copper, from 0xC on active copper.
    let technology = identity[at(147)] >> 4;
    let is_copper = technology >= 0xa;
    let limits = limits.map(|page| thresholds(page, [128, 144, 184, 192, 176].map(at)));
    let module = Module {
        kind: kind(is_copper, technology >= 0xc, identity[at(130)]),
        technology: identity[at(147)],
        length_code: identity[at(146)],
        vendor: text(identity, at(148)),
        part_number: text(identity, at(168)),
        // Two bytes; the wavelength follows.
        revision: [identity[at(184)], identity[at(185)], 0, 0],
        serial_number: text(identity, at(196)),
        // In steps of 0.05 nm.
        wavelength: if is_copper { 0 } else { word(identity, at(186)) / 20 },
        temperature: word(first, 22),
        voltage: word(first, 26),
        rx_power: lanes(4, |lane| power(first, 34 + 2 * lane)),
        tx_bias: lanes(4, |lane| word(first, 42 + 2 * lane)),
        tx_power: lanes(4, |lane| power(first, 50 + 2 * lane)),
        ..limits.unwrap_or_default()
    };
    // Byte 220, bit 2: transmitted power is measured.
    let tx = if identity[at(220)] & 0x04 != 0 { monitor::TX_POWER } else { 0 };
    (module, if is_copper { 0 } else { monitor::RX_POWER | monitor::BIAS | tx })
}

/// CMIS: temperature and voltage in the lower half, identity in upper page 0, what is measured in page 1, thresholds
/// in page 2, the lanes in page 17.
fn cmis(first: &[u8; HALF], identity: &[u8; HALF], paged: Option<&[[u8; HALF]]>) -> (Module, u8) {
    // Byte 212: 0xA and 0xB are passive copper, from 0xC to 0xF active copper.
    let technology = identity[at(212)];
    let is_copper = (0xa..=0xf).contains(&technology);
    let (mut measured, mut powers) = (Module::default(), 0);
    if let Some([advertised, limits, lane_values]) = paged {
        // Byte 160: bit 0 bias, with its unit in bits 3 and 4; bit 1 transmitted, bit 2 received power.
        let advertised = advertised[at(160)];
        for (bit, value) in [(1, monitor::BIAS), (2, monitor::TX_POWER), (4, monitor::RX_POWER)] {
            powers |= if advertised & bit != 0 { value } else { 0 };
        }
        measured = Module {
            bias_scale: advertised >> 3 & 3,
            tx_power: lanes(8, |lane| power(lane_values, at(154 + 2 * lane))),
            tx_bias: lanes(8, |lane| word(lane_values, at(170 + 2 * lane))),
            rx_power: lanes(8, |lane| power(lane_values, at(186 + 2 * lane))),
            ..thresholds(limits, [128, 136, 184, 176, 192].map(at))
        };
    }
    let module = Module {
        kind: kind(is_copper, (0xc..=0xf).contains(&technology), identity[at(203)]),
        technology,
        length_code: identity[at(202)],
        vendor: text(identity, at(129)),
        part_number: text(identity, at(148)),
        revision: [identity[at(164)], identity[at(165)], 0, 0],
        serial_number: text(identity, at(166)),
        temperature: word(first, 14),
        voltage: word(first, 16),
        ..measured
    };
    (module, powers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_mad::register;
    use proptest::prelude::*;

    /// A half page with these bytes at these offsets of the whole page.
    fn half(offset: usize, bytes: &[(usize, &[u8])]) -> [u8; HALF] {
        let mut page = [0; HALF];
        for (at, bytes) in bytes {
            page[at - offset..at - offset + bytes.len()].copy_from_slice(bytes);
        }
        page
    }

    #[test]
    fn optical_qsfp28_is_decoded() {
        let first = half(
            0,
            &[
                (0, &[0x11]),
                (22, &[0x2a, 0x80, 0, 0, 0x80, 0xe8]),
                // 0.5 mW and 0.01 mW received, 6 mA, 1 mW transmitted.
                (34, &[0x13, 0x88, 0x00, 0x64]),
                (42, &[0x0b, 0xb8]),
                (50, &[0x27, 0x10]),
            ],
        );
        let identity = half(
            128,
            &[
                (130, &[0x0c]),
                (147, &[0x40]),
                (148, b"Mellanox        "),
                (168, b"MMA1B00-C100D   "),
                (184, b"A2"),
                (186, &[0x42, 0x68]),
                (196, b"MT2012FT01234   "),
                (220, &[0x0c]),
            ],
        );
        let thresholds = half(128, &[(128, &[0x4b, 0]), (176, &[0x6c, 0xd2, 0x02, 0x8a])]);
        assert_eq!(further_pages(&first).len(), 2);
        let module = decode(&first, &[identity, thresholds]).unwrap();
        assert_eq!(register::text(&module.part_number), "MMA1B00-C100D");
        assert_eq!(register::text(&module.serial_number), "MT2012FT01234");
        assert_eq!((module.form_factor(), module.technology_label()), ("QSFP28", "optical module"));
        assert_eq!(module.celsius(module.temperature), Some(42.5));
        assert_eq!(module.temperature_alarm(), Some(75.0));
        assert_eq!((module.voltage, module.wavelength), (33_000, 850));
        assert_eq!((module.rx_power[0], module.rx_power[1], module.tx_power[0]), (500, 10, 1_000));
        assert_eq!((module.tx_bias[0], module.bias_scale), (3_000, 0));
        // Below the alarm threshold of 65 microwatts.
        assert_eq!(module.dark_lane(4), Some(1));
    }

    #[test]
    fn copper_has_no_powers() {
        let first = half(0, &[(0, &[0x0d, 0, 0x04])]);
        let identity =
            half(128, &[(130, &[0x23]), (146, &[3]), (147, &[0xa0]), (168, b"MCP1600-C003    ")]);
        assert_eq!(further_pages(&first).len(), 1);
        let module = decode(&first, &[identity]).unwrap();
        assert_eq!((module.meters(), module.monitors), (Some(3.0), 0));
        assert_eq!(module.form_factor(), "QSFP+");
    }

    #[test]
    fn cmis_module_is_decoded() {
        let first = half(0, &[(0, &[0x19]), (14, &[0x3c, 0, 0x82, 0x14])]);
        let identity = half(
            128,
            &[
                (129, b"NVIDIA          "),
                (148, b"MMS4X00-NM      "),
                (166, b"MT2250FT00001   "),
                (202, &[0x40 | 5]),
            ],
        );
        let advertised = half(128, &[(160, &[0x07 | 1 << 3])]);
        let thresholds = half(128, &[(128, &[0x4b, 0]), (192, &[0x6c, 0xd2, 0x02, 0x8a])]);
        let lane_values =
            half(128, &[(154, &[0x27, 0x10]), (170, &[0x0b, 0xb8]), (200, &[0x13, 0x88])]);
        assert_eq!(further_pages(&first).len(), 4);
        let pages = [identity, advertised, thresholds, lane_values];
        let module = decode(&first, &pages).unwrap();
        assert_eq!((module.form_factor(), module.meters()), ("OSFP", Some(5.0)));
        assert_eq!(register::text(&module.vendor), "NVIDIA");
        assert_eq!(module.celsius(module.temperature), Some(60.0));
        assert_eq!((module.tx_power[0], module.rx_power[7]), (1_000, 500));
        assert_eq!((module.tx_bias[0], module.bias_scale), (3_000, 1));
        assert!(module.has(monitor::RX_POWER) && module.rx_power_alarm().is_some());
        assert_eq!(decode(&first, &pages[..3]).unwrap().monitors & monitor::RX_POWER, 0);
    }

    #[test]
    fn sfp_is_decoded() {
        let first = half(
            0,
            &[
                (0, &[0x03, 0x04, 0x07]),
                (20, b"FINISAR CORP.   "),
                (40, b"FTLF8536P4BCL   "),
                (60, &[0x03, 0x52]),
                (68, b"N34A6BL         "),
                (92, &[0x68]),
            ],
        );
        let diagnostics = half(0, &[(0, &[0x4e, 0]), (96, &[0x1e, 0x40]), (104, &[0x13, 0x88])]);
        assert_eq!(further_pages(&first).len(), 1);
        let module = decode(&first, &[diagnostics]).unwrap();
        assert_eq!((module.form_factor(), module.wavelength), ("SFP", 850));
        assert_eq!(module.celsius(module.temperature), Some(30.25));
        assert_eq!((module.rx_power[0], module.rx_power[1]), (500, 0));
    }

    proptest! {
        #[test]
        fn any_memory_is_decoded(
            first in prop::collection::vec(any::<u8>(), HALF),
            further in prop::collection::vec(prop::collection::vec(any::<u8>(), HALF), 0..5),
        ) {
            let half = |bytes: &[u8]| <[u8; HALF]>::try_from(bytes).unwrap();
            let first = half(&first);
            let further: Vec<_> = further.iter().map(|bytes| half(bytes)).collect();
            if let Some(module) = decode(&first, &further) {
                prop_assert!(module.meters().is_none_or(|meters| meters < 7_000.0));
            }
        }
    }
}
