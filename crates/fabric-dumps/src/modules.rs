//! Cables and modules: `*.cables` of ibdiagnet2, and its section CABLE_INFO.

use std::collections::HashMap;

use ib_mad::register::{Module, monitor};

use crate::contents::{Contents, PortName};
use crate::problem::Problem;
use crate::text;

/// The fields of a module as text, by their names in lower case without blanks.
#[derive(Clone, Debug, Default)]
pub struct ModuleText(HashMap<String, String>);

/// Optical lanes.
const LANES: usize = 8;

impl ModuleText {
    /// Adds a field, unless it has no value.
    pub fn set(&mut self, name: &str, value: &str) {
        let value = value.trim().trim_matches('"').trim();
        if !matches!(value, "" | "NA" | "N/A") {
            let name = name.replace(' ', "").to_ascii_lowercase();
            self.0.insert(name, value.to_owned());
        }
    }

    fn get(&self, names: &[&str]) -> &str {
        names.iter().find_map(|name| self.0.get(*name)).map_or("", String::as_str)
    }

    /// The number at the start of a value with a unit: `58C`, `3303400uV`, `7.242 mA`.
    fn quantity(&self, names: &[&str]) -> Option<f64> {
        let value = self.get(names);
        let end = value
            .find(|it: char| !matches!(it, '0'..='9' | '.' | '-' | '+'))
            .unwrap_or(value.len());
        value[..end].parse().ok()
    }

    /// Optical powers by lane in whole dBm, as the device reports them. ibdiagnet writes milliwatts before them.
    fn powers(&self, name: &str) -> [u16; LANES] {
        std::array::from_fn(|lane| {
            let value = self.get(&[&format!("{name}{}power", lane + 1)]);
            let dbm =
                value.rsplit(',').next().unwrap_or_default().trim().trim_end_matches("dBm").trim();
            dbm.parse().map_or(0, |dbm: f64| (dbm.round() as i16).cast_unsigned())
        })
    }

    /// A threshold of optical power: the raw field.
    fn threshold(&self, name: &str) -> u16 {
        text::number(self.get(&[name])).map_or(0, |value| value as u16)
    }

    /// The module; `None` if nothing identifies it.
    pub fn into_module(self) -> Option<Module> {
        let copper = self.get(&["type", "typedesc"]).to_ascii_lowercase();
        let (is_copper, has_length) =
            (copper.contains("copper"), !self.get(&["length", "lengthdesc"]).is_empty());
        let is_passive = is_copper && !copper.contains("active") && !copper.contains("limiting");
        let celsius = |names: &[&str]| self.quantity(names).filter(|it| *it != 0.0);
        let in_256ths =
            |degrees: Option<f64>| degrees.map_or(0, |it| ((it * 256.0) as i16).cast_unsigned());
        let microvolts = |names: &[&str]| self.quantity(names).map_or(0, |it| whole(it / 100.0));
        let mut module = Module {
            kind: match (is_passive, has_length) {
                (true, _) => 3,
                (false, true) => 1,
                (false, false) => 2,
            },
            vendor: ascii(self.get(&["vendor"])),
            part_number: ascii(self.get(&["pn"])),
            revision: ascii(self.get(&["rev"])),
            serial_number: ascii(self.get(&["sn"])),
            temperature: in_256ths(celsius(&["temperature"])),
            temperature_high: in_256ths(celsius(&["alarmtemperaturehighthresh"])),
            temperature_low: in_256ths(celsius(&["alarmtemperaturelowthresh"])),
            voltage: microvolts(&["supplyvoltagereporting"]),
            voltage_high: microvolts(&["alarmvoltagehighthresh"]),
            voltage_low: microvolts(&["alarmvoltagelowthresh"]),
            ..Module::default()
        };
        let identifier = self.get(&["identifier"]).split(" (").next().unwrap_or_default();
        let form = |code: &u8| {
            Module { identifier: *code, ..Module::default() }.form_factor() == identifier
        };
        module.identifier = (0..=u8::MAX).find(form).unwrap_or(0);
        if let Some(meters) =
            self.quantity(&["length", "lengthdesc"]).filter(|it| (0.0..64.0).contains(it))
        {
            module.length_code = length_code(&module, meters);
        }
        if module.temperature != 0 {
            module.monitors |= monitor::TEMPERATURE;
        }
        if module.voltage != 0 {
            module.monitors |= monitor::VOLTAGE;
        }
        if !is_copper {
            (module.rx_power, module.tx_power) = (self.powers("rx"), self.powers("tx"));
            let thresholds =
                ["rxpowerhighthresh", "rxpowerlowthresh", "txpowerhighthresh", "txpowerlowthresh"];
            [
                module.rx_power_high,
                module.rx_power_low,
                module.tx_power_high,
                module.tx_power_low,
            ] = thresholds.map(|name| self.threshold(name));
            for (lane, bias) in module.tx_bias.iter_mut().enumerate() {
                let milliamperes = self.quantity(&[&format!("tx{}bias", lane + 1)]).unwrap_or(0.0);
                *bias = whole(milliamperes * 500.0);
            }
            if !self.get(&["rx1power"]).is_empty() {
                module.monitors |= monitor::RX_POWER | monitor::TX_POWER | monitor::BIAS;
            }
        }
        let is_known = !self.get(&["sn", "pn", "vendor"]).is_empty();
        is_known.then_some(module)
    }
}

#[expect(clippy::cast_sign_loss, reason = "at least 0")]
fn whole(value: f64) -> u16 {
    value.max(0.0) as u16
}

/// The code of a length in whole meters: CMIS modules have a multiplier.
fn length_code(module: &Module, meters: f64) -> u8 {
    let whole = whole(meters).min(63) as u8;
    let codes = [whole, whole | 0x40];
    let is =
        |code: &u8| Module { length_code: *code, ..*module }.meters() == Some(f64::from(whole));
    codes.into_iter().find(is).unwrap_or(0)
}

/// The bytes of a text, cut to the field.
pub fn ascii<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    for (byte, char) in bytes.iter_mut().zip(text.bytes()) {
        *byte = char;
    }
    bytes
}

/// Reads `*.cables`: a block per port.
pub fn parse(text: &str) -> Result<Contents, Problem> {
    let mut found = Contents { taken_at: crate::ibdiagnet::timestamp(text), ..Contents::default() };
    let mut open: Option<(PortName, ModuleText)> = None;
    let close = |open: Option<(PortName, ModuleText)>, found: &mut Contents| {
        if let Some((key, module)) = open {
            found.port(key).module = module.into_module().map(Box::new);
        }
    };
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("Port=") {
            close(open.take(), &mut found);
            open = Some((crate::ibdiagnet::port_line(line, index + 1)?, ModuleText::default()));
        } else if let Some(((_, module), (name, value))) = open.as_mut().zip(line.split_once(':')) {
            module.set(name, value);
        }
    }
    close(open, &mut found);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_mad::Guid;
    use ib_mad::register::text as shown;

    /// As a public dump has them, with other numbers.
    const CABLES: &str = "\
-------------------------------------------------------
Port=1 Lid=0x0018 GUID=0xb0cf000000000940 Port Name=S1/N1/P1/1/1
-------------------------------------------------------
Source: PHY_DD
Identifier: OSFP (0x08)
Vendor: ACME
PN: OSFP-SR8
SN: G001
Length: NA
Type: 850 nm VCSEL
Temperature: 58C
RX1 Power: 1.585 mW, 2.000 dBm
TX1 Bias: 7.242 mA
Supply Voltage Reporting: 3303400uV
AlarmTemperatureHighThresh: 80C
RXPowerHighThresh: 4
RXPowerLowThresh: 65530

Port=2 Lid=0x0018 GUID=0xb0cf000000000940 Port Name=S1/N1/P1/1/2
Identifier: OSFP (0x08)
SN: C001-1
PN: C2
Length: 2 m
Type: Copper cable- unequalized
Temperature: 0C
";

    #[test]
    fn cables_are_modules() {
        let found = parse(CABLES).unwrap();
        let module = |port| {
            let key = PortName::Port(Guid(0xb0cf_0000_0000_0940), port);
            found.ports[&key].module.clone().unwrap()
        };
        let optical = module(1);
        assert_eq!((shown(&optical.serial_number), optical.form_factor()), ("G001".into(), "OSFP"));
        assert_eq!(
            (optical.celsius(optical.temperature), optical.temperature_alarm()),
            (Some(58.0), Some(80.0))
        );
        assert_eq!(optical.dbm(optical.rx_power[0]), Some(2.0));
        assert!((optical.amperes(optical.tx_bias[0]) - 0.007_242).abs() < 1e-6);
        assert_eq!((optical.kind, optical.voltage), (2, 33_034));
        let copper = module(2);
        assert_eq!((copper.kind, copper.meters(), copper.monitors), (3, Some(2.0), 0));
    }
}
