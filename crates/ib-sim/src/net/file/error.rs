//! What can be wrong with a net file.

use super::super::build::{BuildError, LONGEST_PREFIX};

/// Why a file is no net.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetFileError {
    /// A line is wrong.
    #[error("line {line}: {problem}")]
    Line {
        /// Its number, from 1 on.
        line: usize,
        /// What is wrong.
        problem: Problem,
    },
    /// Nothing in the file is a node.
    #[error(
        "no nodes: neither an ibsim net file nor ibnetdiscover's output, which have lines such as \
         Switch 8 \"leaf-1\""
    )]
    NoNodes,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// What the line says cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A key without `=`.
    #[error("\"{0}\" without \"=\" and a value")]
    NoValue(&'static str),
    /// A number that is none, or too large, or not one of the key's.
    #[error("bad number for {key}: \"{}\"; {wanted}", .text.escape_default())]
    BadNumber {
        /// What it is a number of.
        key: &'static str,
        /// What stands there.
        text: String,
        /// What should.
        wanted: &'static str,
    },
    /// A node's line without an id.
    #[error("a node without an id in quotes")]
    NoId,
    /// A cable's line without a peer.
    #[error("a cable without the other end's id in quotes")]
    NoPeer,
    /// A cable's line that belongs to no node.
    #[error("a cable that belongs to no node: a node's cables follow its line without a gap")]
    Stray,
    /// A module's prefix that ids cannot have.
    #[error("bad module prefix \"{}\": at most {LONGEST_PREFIX} bytes without \"#\" and \"@\"",
        .0.escape_default())]
    BadPrefix(String),
    /// Two ports have the same alias.
    #[error("alias \"{}\" is given already", .0.escape_default())]
    DuplicateAlias(String),
    /// The other end of a cable is not in the file.
    #[error("{port} leads to \"{}\", which is not in the file", .peer.escape_default())]
    UnknownPeer {
        /// This end.
        port: String,
        /// The id or alias of the other.
        peer: String,
    },
    /// The two ends of a cable say different things, or two cables have one end.
    #[error("{port} leads to {peer} here, but line {other} joins {taken} to {by}")]
    Disagree {
        /// This end.
        port: String,
        /// The other end, according to this line.
        peer: String,
        /// Which of the two another line says something else about.
        taken: String,
        /// What it leads to according to that line.
        by: String,
        /// That line.
        other: usize,
    },
    /// A line that brings in what this reader does not have.
    #[error("\"{0}\" is for ibsim alone: a net is read from one file, and nothing is run")]
    Unsupported(&'static str),
}
