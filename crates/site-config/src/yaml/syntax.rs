//! Errors of the YAML syntax in words that need no knowledge of a parser.

use granit_parser::ErrorKind;

use crate::near::quoted;

/// What is wrong, and how to write it.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn problem(kind: &ErrorKind) -> String {
    use ErrorKind as Kind;
    let text = match kind {
        Kind::UnexpectedCharacter { character } => {
            return format!(
                "the character {} cannot stand here: quote the text",
                quoted(&character.to_string())
            );
        }
        Kind::UnclosedFlowCollection { open } => {
            return format!("the bracket {open} is not closed");
        }
        Kind::MismatchedFlowCollectionEnd { open, close } => {
            return format!("the bracket {open} is closed by {close}");
        }
        Kind::UnexpectedEofFlowSequence | Kind::ExpectedFlowSequenceSeparator => {
            "in a list [a, b] a comma or the closing ] is missing"
        }
        Kind::UnexpectedEofFlowMapping
        | Kind::UnexpectedEofImplicitFlowMapping
        | Kind::ExpectedFlowMappingSeparator => {
            "in a mapping {a: 1, b: 2} a comma or the closing } is missing"
        }
        Kind::MisplacedFlowCollectionEnd => "this bracket closes nothing",
        Kind::UnclosedQuotedScalar => "the quote is not closed",
        Kind::UnexpectedEof
        | Kind::UnexpectedEofBlockSequence
        | Kind::UnexpectedEofBlockMapping => "the file ends in the middle of a value",
        Kind::TabNotAllowed
        | Kind::TabInBlockIndentation
        | Kind::TabInIndentation
        | Kind::TabAtBlockScalarStart
        | Kind::TabInPlainScalar => "a tab cannot stand here: indent by blanks",
        Kind::InvalidIndentation
        | Kind::InvalidQuotedScalarIndent
        | Kind::InvalidBlockScalarIndent
        | Kind::InvalidFlowScalarIndent
        | Kind::ZeroBlockScalarIndent
        | Kind::ExpectedBlockMappingKey
        | Kind::ExpectedBlockSequenceEntry
        | Kind::BlockSequenceEntryNotAllowed
        | Kind::MappingKeyNotAllowed => {
            "the indentation does not fit: keys of one mapping, and entries of one list, begin in \
             the same column"
        }
        Kind::MappingValueNotAllowed
        | Kind::InvalidColonPlacement
        | Kind::FlowMappingValueAdjacentCollection => {
            "a colon cannot stand here: quote a text that has one; or a colon is missing in the line before"
        }
        Kind::SimpleKeyExpected | Kind::InvalidSimpleKey => {
            "a colon is missing behind a key: write \"key: value\", in one line"
        }
        Kind::InvalidMappingValueWhitespace | Kind::ExpectedWhitespace => {
            "a blank is missing behind the colon: write \"key: value\""
        }
        Kind::InvalidBlockEntryWhitespace => {
            "a blank is missing behind the dash: write \"- value\""
        }
        Kind::BlockEntryInFlowCollection | Kind::PlainScalarStartsWithDashFlowIndicator => {
            "a dash cannot stand in a list [a, b]: quote the text, or write a line \"- a\" each"
        }
        Kind::ExpectedNodeContent | Kind::UnexpectedEndOfPlainScalar => "a value is missing",
        Kind::InvalidTrailingSingleQuotedScalar | Kind::InvalidTrailingDoubleQuotedScalar => {
            "something stands behind the closing quote"
        }
        Kind::UnknownQuotedScalarEscape
        | Kind::InvalidQuotedScalarHexEscape
        | Kind::InvalidUnicodeEscape
        | Kind::InvalidLowSurrogate
        | Kind::InvalidLowSurrogateHexEscape
        | Kind::MissingLowSurrogate
        | Kind::UnpairedLowSurrogate => {
            "in double quotes \\ begins an escape such as \\n or \\\\: for plain text use single quotes"
        }
        Kind::CommentNotSeparated | Kind::CommentInterceptedScalar => {
            "a comment needs a blank before its #, and cannot stand within a text"
        }
        Kind::InvalidBlockScalarHeader => "behind | or > the text begins in the next line",
        Kind::UnknownAnchor => "the alias (*) has no anchor (&) of its name before it",
        Kind::MissingAnchorOrAliasName => {
            "an anchor (&) or alias (*) has no name: quote a text that begins so"
        }
        Kind::DocumentIndicatorInQuotedScalar
        | Kind::ExpectedDocumentStart
        | Kind::InvalidDocumentEnd
        | Kind::MissingDocumentEndBeforeDirective
        | Kind::MultipleDocumentsUnsupported => {
            "a file has one document: --- and ... stand before and behind it alone"
        }
        Kind::ExpectedTagBang
        | Kind::ExpectedTagDirectiveBang
        | Kind::InvalidGlobalTagCharacter
        | Kind::InvalidTagDirectiveTerminator
        | Kind::InvalidTagTerminator
        | Kind::MissingTagUri
        | Kind::UnclosedVerbatimTag
        | Kind::InvalidTagEscape
        | Kind::InvalidTagUtf8
        | Kind::InvalidTagUtf8LeadingByte
        | Kind::InvalidTagUtf8TrailingByte
        | Kind::UndeclaredTagHandle
        | Kind::DuplicateTagDirective => {
            "a tag (!) has no use here: quote a text that begins with !"
        }
        Kind::DuplicateVersionDirective
        | Kind::UnsupportedYamlMajorVersion
        | Kind::InvalidDirectiveTerminator
        | Kind::DirectiveDisallowed
        | Kind::MissingYamlVersionSeparator
        | Kind::MissingDirectiveName
        | Kind::InvalidDirectiveName
        | Kind::DirectiveByteLimitExceeded { .. }
        | Kind::TooManyReservedDirectiveParams { .. }
        | Kind::YamlVersionTooLong
        | Kind::MissingYamlVersion => {
            "a directive (%) has no use here: quote a text that begins with %"
        }
        Kind::BomInsideDocument => "a byte order mark cannot stand here",
        Kind::InputDecoding { .. } => "is not a text in UTF-8",
        Kind::RecursionLimitExceeded => "lists and mappings are nested more than 255 deep",
        // What cannot happen to a text in memory.
        _ => "is not YAML",
    };
    text.to_owned()
}
