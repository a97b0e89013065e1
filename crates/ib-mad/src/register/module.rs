//! The module or cable of a port: what it is, and what it measures.

use super::fields::{LANES, bytes, dword, plausible_degrees};
use crate::layout::attribute;

attribute! {
    /// PDDR, page 3: the module or cable of a port, and its measurements.
    pub struct Module = 0x5031 {
        technology: u8 = dword(0x08, 31, 24), "Technology of the transmitter; in QSFP modules its high half.";
        kind: u8 = dword(0x0c, 31, 28), "1 active, 2 optical, 3 passive copper, 4 unplugged, 5 twisted pair.";
        length_code: u8 = dword(0x0c, 23, 16), "Length: meters, or with a multiplier in CMIS modules.";
        identifier: u8 = dword(0x0c, 15, 8), "Form factor.";
        vendor: [u8; 16] = bytes(0x1c, 1), "Vendor, ASCII.";
        part_number: [u8; 16] = bytes(0x2c, 1), "Part number, ASCII.";
        revision: [u8; 4] = bytes(0x3c, 1), "Revision, ASCII.";
        serial_number: [u8; 16] = bytes(0x44, 1), "Serial number, ASCII.";
        temperature: u16 = dword(0x54, 31, 16), "1/256 degree Celsius, signed.";
        voltage: u16 = dword(0x54, 15, 0), "100 microvolts.";
        rx_power: [u16; LANES] = bytes(0x58, 2), "Received optical power by lane.";
        tx_power: [u16; LANES] = bytes(0x68, 2), "Transmitted optical power by lane.";
        tx_bias: [u16; LANES] = bytes(0x78, 2), "Bias current of the lasers by lane, 2 microamperes.";
        temperature_high: u16 = dword(0x88, 31, 16), "Alarm threshold.";
        temperature_low: u16 = dword(0x88, 15, 0), "Alarm threshold.";
        voltage_high: u16 = dword(0x8c, 31, 16), "Alarm threshold.";
        voltage_low: u16 = dword(0x8c, 15, 0), "Alarm threshold.";
        rx_power_high: u16 = dword(0x90, 31, 16), "Alarm threshold.";
        rx_power_low: u16 = dword(0x90, 15, 0), "Alarm threshold.";
        tx_power_high: u16 = dword(0x94, 31, 16), "Alarm threshold.";
        tx_power_low: u16 = dword(0x94, 15, 0), "Alarm threshold.";
        bias_high: u16 = dword(0x98, 31, 16), "Alarm threshold.";
        bias_low: u16 = dword(0x98, 15, 0), "Alarm threshold.";
        wavelength: u16 = dword(0x9c, 15, 0), "Nanometers.";
        bias_scale: u8 = dword(0xa0, 11, 10), "The unit of bias is 2 microamperes times two to this.";
        monitors: u8 = dword(0xa4, 15, 8), "What the module measures: temperature, voltage, tx, rx, bias from bit 0 on.";
    }
}

/// The identifiers of modules with CMIS management, whose lengths have multipliers.
const CMIS: [u8; 5] = [5, 6, 7, 8, 10];

/// What a module measures: bits of [`Module::monitors`].
pub mod monitor {
    /// Temperature.
    pub const TEMPERATURE: u8 = 1;
    /// Voltage.
    pub const VOLTAGE: u8 = 1 << 1;
    /// Transmitted optical power.
    pub const TX_POWER: u8 = 1 << 2;
    /// Received optical power.
    pub const RX_POWER: u8 = 1 << 3;
    /// Bias current.
    pub const BIAS: u8 = 1 << 4;
}

impl Module {
    /// The module's own alarm threshold of temperature in degrees Celsius, if it has one.
    pub fn temperature_alarm(&self) -> Option<f64> {
        let high = self.celsius(self.temperature_high);
        // Data sheets have 70 °C and more: a lower threshold is none.
        high.filter(|high| *high >= 40.0 && self.has(monitor::TEMPERATURE))
    }

    /// Whether the temperature is at or above the module's own alarm threshold.
    pub fn is_hot(&self) -> bool {
        let now = self.celsius(self.temperature);
        now.zip(self.temperature_alarm()).is_some_and(|(now, high)| now >= high)
    }

    /// The module's own alarm threshold of received optical power in dBm, if it is one that can be used.
    pub fn rx_power_alarm(&self) -> Option<f64> {
        let is_known = matches!(self.kind, 1 | 2)
            && self.has(monitor::RX_POWER)
            && self.is_in_microwatts()
            && self.rx_power_low < self.rx_power_high;
        self.dbm(self.rx_power_low).filter(|_| is_known)
    }

    /// The first of these lanes whose received optical power is below the module's own alarm threshold.
    pub fn dark_lane(&self, lanes: usize) -> Option<usize> {
        self.rx_power_alarm()?;
        self.rx_power.iter().take(lanes).position(|power| *power < self.rx_power_low)
    }

    /// Whether one of these lanes sends less light than the module's own alarm threshold, or its laser needs a
    /// current outside of its thresholds. A lane of which nothing is reported is not weak: the link could not be up.
    pub fn is_weak(&self, lanes: usize) -> bool {
        let is_optical = matches!(self.kind, 1 | 2);
        let sends = self.has(monitor::TX_POWER)
            && self.is_in_microwatts()
            && self.tx_power_low < self.tx_power_high;
        let has_bias = self.has(monitor::BIAS) && self.bias_low < self.bias_high;
        let is_low = |power: &u16| (1..self.tx_power_low).contains(power);
        let is_out = |bias: &u16| *bias > 0 && !(self.bias_low..=self.bias_high).contains(bias);
        is_optical
            && (sends && self.tx_power.iter().take(lanes).any(is_low)
                || has_bias && self.tx_bias.iter().take(lanes).any(is_out))
    }

    /// Whether it cannot be separated from its cable: active cables, and copper.
    pub fn is_part_of_cable(&self) -> bool {
        matches!(self.kind, 1 | 3 | 5)
    }

    /// The request's unit of optical power is honored: an alarm threshold of -15 dBm is 32 microwatts, and no module
    /// has a lower one, while 32 dBm would be 1.6 watts.
    fn is_in_microwatts(&self) -> bool {
        self.rx_power_high.max(self.tx_power_high) >= 32
            && self.rx_power_low <= self.rx_power_high
            && self.tx_power_low <= self.tx_power_high
    }

    /// Whether the unit of optical powers is known: by the thresholds.
    pub fn has_power_unit(&self) -> bool {
        (self.rx_power_high, self.tx_power_high) != (0, 0)
    }

    /// A power of this page in dBm; `None` for no light at all, and if the unit is not known.
    pub fn dbm(&self, power: u16) -> Option<f64> {
        if !self.has_power_unit() {
            None
        } else if self.is_in_microwatts() {
            (power > 0).then(|| 10.0 * (f64::from(power) / 1_000.0).log10())
        } else {
            Some(f64::from(power.cast_signed())).filter(|dbm| (-40.0..=20.0).contains(dbm))
        }
    }

    /// Whether the module measures a value; see [`monitor`].
    pub fn has(&self, monitor: u8) -> bool {
        self.monitors & monitor != 0
    }

    /// A bias current of this page in amperes.
    pub fn amperes(&self, bias: u16) -> f64 {
        f64::from(u32::from(bias) << self.bias_scale.min(3)) * 2e-6
    }

    /// A temperature of this page in degrees Celsius.
    pub fn celsius(&self, temperature: u16) -> Option<f64> {
        plausible_degrees(temperature, 256.0)
    }

    /// Whether there is a module.
    pub fn is_plugged(&self) -> bool {
        self.kind != 4
            && (self.identifier, self.vendor, self.serial_number) != (0, [0; 16], [0; 16])
    }

    /// Length of the cable in meters; `None` if it is not reported, as for separable optics.
    pub fn meters(&self) -> Option<f64> {
        let (number, unit) = (self.length_code & 0x3f, self.length_code >> 6);
        let meters = if CMIS.contains(&self.identifier) {
            f64::from(number) * [0.1, 1.0, 10.0, 100.0][usize::from(unit)]
        } else {
            f64::from(self.length_code)
        };
        (meters > 0.0).then_some(meters)
    }

    /// The kind of cable or module for display; empty if it is not reported.
    pub fn technology_label(&self) -> &'static str {
        match self.kind {
            1 => "active cable",
            2 => "optical module",
            3 => "passive copper",
            5 => "twisted pair",
            6 => "co-packaged optics",
            _ => "",
        }
    }

    /// The form factor for display; empty if it is not known.
    pub fn form_factor(&self) -> &'static str {
        let names = [
            "QSFP28",
            "QSFP+",
            "SFP",
            "QSA",
            "backplane",
            "SFP-DD",
            "QSFP-DD",
            "QSFP-CMIS",
            "OSFP",
            "C2C",
            "DSFP",
            "split QSFP",
            "CPO",
        ];
        names.get(usize::from(self.identifier)).copied().unwrap_or_default()
    }
}
