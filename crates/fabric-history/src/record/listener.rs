//! Who hears of events when they are detected, whether or not they are recorded.

use std::fmt;

use crate::event::NewEvent;

/// Gets each event of a fabric, by its name, once. It runs on the thread that detects events, so it must not wait.
type Listen = dyn FnMut(&str, &NewEvent) + Send;

/// A listener, or none.
#[derive(Default)]
pub struct EventListener(Option<Box<Listen>>);

impl EventListener {
    /// One that calls this for each event.
    pub fn new(listen: impl FnMut(&str, &NewEvent) + Send + 'static) -> Self {
        EventListener(Some(Box::new(listen)))
    }

    /// Tells it of an event.
    pub fn tell(&mut self, fabric: &str, event: &NewEvent) {
        if let Some(listen) = &mut self.0 {
            listen(fabric, event);
        }
    }
}

impl fmt::Debug for EventListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventListener").field(&self.0.is_some()).finish()
    }
}
