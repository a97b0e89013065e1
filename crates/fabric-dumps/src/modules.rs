//! Cables and modules: `*.cables` of ibdiagnet2, and its section CABLE_INFO.

use std::collections::{HashMap, HashSet};

use ib_mad::register::{Module, monitor};

use crate::contents::{Contents, PortName};
use crate::lines::Line;
use crate::pm;
use crate::problem::Problem;
use crate::text;
use crate::tool_output::ToolOutput;

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

/// Whether a whole line is one that only `*.cables` has.
pub fn is_line(line: &str) -> bool {
    let names = ["Identifier: ", "Vendor: ", "PN: ", "SN: ", "OUI: ", "Cable Type: "];
    names.iter().any(|name| line.starts_with(name))
}

/// Whether a line is a damaged one of `*.cables`.
pub fn is_damaged(line: &str) -> bool {
    line.starts_with("Port=")
}

/// Reads `*.cables`: a block per port.
pub fn parse<'a>(lines: impl Iterator<Item = Line<'a>>) -> Result<Vec<Contents>, Problem> {
    let mut output = ToolOutput::new(false);
    let mut open: Option<(PortName, ModuleText)> = None;
    let mut known = HashSet::new();
    let close = |open: Option<(PortName, ModuleText)>, output: &mut ToolOutput| {
        if let Some((name, module)) = open {
            output.found.port(name).module = module.into_module().map(Box::new);
        }
    };
    for line in lines {
        if let Some(name) = pm::port_line(line.text) {
            close(open.take(), &mut output);
            output.list_once(&mut known, name);
            open = Some((name, ModuleText::default()));
        } else if is_damaged(line.text) {
            output.damaged(line, "a line of *.cables, `Port=N Lid=0x… GUID=0x…`")?;
        } else if line.text.starts_with('#') {
            output.skip(line);
        } else if let Some((name, value)) = line.text.split_once(':') {
            match &mut open {
                // The value may go on.
                _ if line.is_open => output.cut_off(line),
                // The line of another port is missing.
                Some((_, module)) if name == "SN" && !module.get(&["sn"]).is_empty() => {
                    let expected = "one serial number below a line `Port=… GUID=…`";
                    return Err(Problem::unreadable(line, expected));
                }
                Some((_, module)) => module.set(name, value),
                None if is_line(line.text) => {
                    output.damaged(line, "the line `Port=… GUID=…` of a port before its module")?;
                }
                None => output.skip(line),
            }
        } else {
            output.skip(line);
        }
    }
    close(open, &mut output);
    Ok(output.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::Lines;
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
        let mut lines = Lines::default();
        CABLES.lines().enumerate().for_each(|(index, line)| lines.push(index + 1, line));
        let found = parse(lines.iter()).unwrap().remove(0);
        let module = |port| {
            let key = PortName::port(Guid(0xb0cf_0000_0000_0940), port);
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
