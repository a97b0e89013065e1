//! stub
#[derive(Clone, Copy)]
pub enum Index {
    None,
    Priority,
    Lane,
}
pub struct EthernetRow {
    pub metric: &'static str,
    pub index: Index,
    pub micros: bool,
    pub help: &'static str,
    pub strings: &'static [(&'static str, &'static str)],
}
pub const TABLE: &[EthernetRow] = &[];
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    pub row: usize,
    pub index: Option<u8>,
}
pub fn knows(_driver: &str) -> bool {
    false
}
pub fn meaning(_driver: &str, _string: &str) -> Option<Meaning> {
    None
}
