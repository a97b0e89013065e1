//! What was measured on a link: utilization, bit errors, temperatures, congestion. What is not known is no zero.

use ib_health::bit_errors::{BerWindow, Measurement};
use ib_health::congestion::Role;

use crate::link_row::{LinkRow, wait_ratio};
use crate::model::{CongestionCounts, Label, LinkFigures, WindowFigure};
use crate::modules::{ModuleTemperature, module_temperature};

/// The part that a link has in a congestion: the worse one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkCongestion {
    /// No end waits for long.
    None,
    /// An end waits for others.
    Victim,
    /// Others wait for an end.
    Root,
}

impl LinkRow<'_> {
    /// The names of both ends: `leaf-0-1 port 9 – spine-0 port 3`.
    pub fn name(&self) -> String {
        let [near, far] = self.ports().map(|port| self.view.snapshot.fabric.port_label(port));
        format!("{near} – {far}")
    }

    /// The utilization of its busier direction, of several planes of the busiest one.
    pub fn used(&self) -> Option<f32> {
        self.all_ports().filter_map(|port| self.view.used(port)).reduce(f32::max)
    }

    /// The bit errors of both directions in a window, and the shortest time for which a direction was observed in it.
    /// A direction whose receiver cannot be read does not count.
    pub fn window_errors(&self, window: BerWindow) -> Option<Measurement> {
        let ends = self.all_ports().filter_map(|port| self.view.port(port));
        let measured = ends.map(|end| end.bit_errors.windows[window as usize]);
        measured.filter(|it| !it.span().is_zero()).reduce(|a, b| Measurement {
            errors: a.errors.saturating_add(b.errors),
            seconds: a.seconds.min(b.seconds),
        })
    }

    /// The temperature of the hottest cable or module of its ends.
    pub fn temperature(&self) -> Option<ModuleTemperature> {
        let ends = self.all_ports().filter_map(|port| module_temperature(self.view, port));
        // One at its own limit comes before a hotter one that is not.
        ends.reduce(|a, b| {
            let order = a.is_alarm().cmp(&b.is_alarm()).then(a.celsius.total_cmp(&b.celsius));
            if order.is_lt() { b } else { a }
        })
    }

    /// Its part in a congestion; `None` if it is not known how long its ends wait.
    pub fn congestion_part(&self) -> Option<LinkCongestion> {
        let ends = self.all_ports().filter_map(|port| self.view.port(port));
        let parts = ends.filter_map(|end| match end.role {
            Some(Role::Root(_)) => Some(LinkCongestion::Root),
            Some(Role::Victim { .. }) => Some(LinkCongestion::Victim),
            None => {
                wait_ratio(end).or(end.held_wait.map(|it| it.share)).map(|_| LinkCongestion::None)
            }
        });
        parts.max()
    }

    /// The congestion of one link: a root or a victim at either end.
    pub(crate) fn congestion(&self) -> CongestionCounts {
        let part = self.congestion_part();
        let ends = self.all_ports().filter_map(|port| self.view.port(port));
        let waits = ends
            .filter(|end| end.role.is_some())
            .filter_map(|end| wait_ratio(end).or(end.held_wait.map(|held| held.share)));
        CongestionCounts {
            roots: usize::from(part == Some(LinkCongestion::Root)),
            victims: usize::from(part == Some(LinkCongestion::Victim)),
            max_wait_ratio: waits.reduce(f32::max),
        }
    }
}

impl LinkFigures {
    /// Adds what was measured on one more link.
    pub(crate) fn add_link(&mut self, link: &LinkRow<'_>) {
        let rate = link.rate();
        if let Some(speed) = rate.speed {
            *self.speeds.entry(speed.label().into()).or_default() += 1;
        }
        self.min_rate = [self.min_rate, rate.bytes].into_iter().flatten().min();
        if let Some(used) = link.used() {
            self.max_utilization = Some(self.max_utilization.map_or(used, |max| max.max(used)));
            self.utilization_known += 1;
        }
        if let Some(ModuleTemperature { celsius, .. }) = link.temperature() {
            self.max_temperature =
                Some(self.max_temperature.map_or(celsius, |max| max.max(celsius)));
            self.temperature_known += 1;
        }
        for window in BerWindow::ALL {
            if let Some(measured) = link.window_errors(window) {
                self.add_errors(window.label(), measured.errors.into(), 1);
            }
        }
    }

    /// Adds what was measured on other links.
    pub(crate) fn add(&mut self, other: &LinkFigures) {
        for (speed, count) in &other.speeds {
            *self.speeds.entry(speed.clone()).or_default() += count;
        }
        let max = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
        self.min_rate = [self.min_rate, other.min_rate].into_iter().flatten().min();
        let used = [self.max_utilization, other.max_utilization];
        self.max_utilization = used.into_iter().flatten().reduce(f32::max);
        self.utilization_known += other.utilization_known;
        self.max_temperature = max(self.max_temperature, other.max_temperature);
        self.temperature_known += other.temperature_known;
        for figure in &other.bit_errors {
            self.add_errors(&figure.window, figure.errors, figure.known);
        }
    }

    fn add_errors(&mut self, window: &str, errors: u64, known: usize) {
        let place = self.bit_errors.iter().position(|it| it.window == window);
        let place = place.unwrap_or_else(|| {
            let label = BerWindow::from_label(window).map_or_else(
                || Label::Owned(window.to_owned()),
                |window| Label::Borrowed(window.label()),
            );
            self.bit_errors.push(WindowFigure { window: label, ..WindowFigure::default() });
            self.bit_errors.len() - 1
        });
        let sum = &mut self.bit_errors[place];
        sum.errors = sum.errors.saturating_add(errors);
        sum.known += known;
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::topology;
    use fabric_observation::Observation;
    use ib_health::assessment::Flow;
    use ib_health::testing::{fine, over, port, snapshot};

    #[test]
    fn what_is_not_known_is_not_zero() {
        let snapshot = snapshot();
        let mut assessment = fine(&snapshot);
        let [leaf, host] = [port(&snapshot, 1, 1), port(&snapshot, 2, 1)];
        assessment.ports[leaf].tx = Some(Flow { rate: 1.0, used: 0.25 });
        assessment.ports[leaf].bit_errors = over(432);
        assessment.ports[host].bit_errors = over(10);
        let snapshot = Some(snapshot.into());
        let observation = Observation { snapshot, assessment, ..Observation::default() };
        let topology = topology(&observation);
        let figures = &topology.switches[0].figures;
        assert_eq!(figures, &topology.switches[0].host_figures, "it has no other links");
        assert_eq!((figures.max_utilization, figures.utilization_known), (Some(0.25), 1));
        assert_eq!((figures.max_temperature, figures.temperature_known), (None, 0));
        let windows: Vec<_> =
            figures.bit_errors.iter().map(|it| (&*it.window, it.errors, it.known)).collect();
        assert_eq!(windows, [("12m", 442, 1)]);
        assert_eq!(figures.speeds.values().sum::<usize>(), 2, "{:?}", figures.speeds);
        let mut twice = figures.clone();
        twice.add(figures);
        assert_eq!((twice.bit_errors[0].errors, twice.bit_errors[0].known), (884, 2));
        assert_eq!((twice.max_utilization, twice.utilization_known), (Some(0.25), 2));
    }
}
