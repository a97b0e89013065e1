//! Generated nets: fat trees, Dragonfly+, multi-plane fabrics (XDR), and two hosts with a cable.

mod back_to_back;
mod builder;
mod dragonfly_plus;
mod fat_tree;
#[cfg(test)]
mod tests;
mod xdr;

pub use back_to_back::BackToBack;
pub use builder::ShapeError;
pub use dragonfly_plus::DragonflyPlus;
pub use fat_tree::FatTree;
pub use xdr::Xdr;
