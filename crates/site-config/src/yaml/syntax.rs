//! Explains errors of the YAML syntax without terms of the parser.

use granit_parser::ErrorKind;

use crate::suggestion::quoted;

/// What is wrong, and how to write it instead.
#[rustfmt::skip] // several kinds a line
#[allow(clippy::enum_glob_use, reason = "a table")]
pub(super) fn problem(kind: &ErrorKind) -> String {
    use ErrorKind::*;
    let text = match kind {
        UnexpectedCharacter { character } => {
            let character = quoted(&character.to_string());
            return format!("the character {character} cannot stand here: quote the text");
        }
        UnclosedFlowCollection { open } => return format!("the bracket {open} is not closed"),
        MismatchedFlowCollectionEnd { open, close } => {
            return format!("the bracket {open} is closed by {close}");
        }
        UnexpectedEofFlowSequence | ExpectedFlowSequenceSeparator =>
            "in a list [a, b] a comma or the closing ] is missing",
        UnexpectedEofFlowMapping | UnexpectedEofImplicitFlowMapping
            | ExpectedFlowMappingSeparator =>
            "in a mapping {a: 1, b: 2} a comma or the closing } is missing",
        MisplacedFlowCollectionEnd => "this bracket closes nothing",
        UnclosedQuotedScalar => "the quote is not closed",
        UnexpectedEof | UnexpectedEofBlockSequence | UnexpectedEofBlockMapping =>
            "the file ends in the middle of a value",
        TabNotAllowed | TabInBlockIndentation | TabInIndentation | TabAtBlockScalarStart
            | TabInPlainScalar =>
            "a tab cannot stand here: indent by blanks",
        InvalidIndentation | InvalidQuotedScalarIndent | InvalidBlockScalarIndent
            | InvalidFlowScalarIndent | ZeroBlockScalarIndent | ExpectedBlockMappingKey
            | ExpectedBlockSequenceEntry | BlockSequenceEntryNotAllowed | MappingKeyNotAllowed =>
            "the indentation does not fit: keys of one mapping, and entries of one list, begin in \
             the same column",
        MappingValueNotAllowed | InvalidColonPlacement | FlowMappingValueAdjacentCollection =>
            "a colon cannot stand here: quote a text that has one; or a colon is missing in the \
             line before",
        SimpleKeyExpected | InvalidSimpleKey =>
            "a colon is missing behind a key: write \"key: value\", in one line",
        InvalidMappingValueWhitespace | ExpectedWhitespace =>
            "a blank is missing behind the colon: write \"key: value\"",
        InvalidBlockEntryWhitespace => "a blank is missing behind the dash: write \"- value\"",
        BlockEntryInFlowCollection | PlainScalarStartsWithDashFlowIndicator =>
            "a dash cannot stand in a list [a, b]: quote the text, or write a line \"- a\" each",
        ExpectedNodeContent | UnexpectedEndOfPlainScalar => "a value is missing",
        InvalidTrailingSingleQuotedScalar | InvalidTrailingDoubleQuotedScalar =>
            "something stands behind the closing quote",
        UnknownQuotedScalarEscape | InvalidQuotedScalarHexEscape | InvalidUnicodeEscape
            | InvalidLowSurrogate | InvalidLowSurrogateHexEscape | MissingLowSurrogate
            | UnpairedLowSurrogate =>
            "in double quotes \\ begins an escape such as \\n or \\\\: for plain text use single \
             quotes",
        CommentNotSeparated | CommentInterceptedScalar =>
            "a comment needs a blank before its #, and cannot stand within a text",
        InvalidBlockScalarHeader => "behind | or > the text begins in the next line",
        UnknownAnchor => "the alias (*) has no anchor (&) of its name before it",
        MissingAnchorOrAliasName =>
            "an anchor (&) or alias (*) has no name: quote a text that begins so",
        DocumentIndicatorInQuotedScalar | ExpectedDocumentStart | InvalidDocumentEnd
            | MissingDocumentEndBeforeDirective | MultipleDocumentsUnsupported =>
            "a file has one document: --- and ... stand before and behind it alone",
        ExpectedTagBang | ExpectedTagDirectiveBang | InvalidGlobalTagCharacter
            | InvalidTagDirectiveTerminator | InvalidTagTerminator | MissingTagUri
            | UnclosedVerbatimTag | InvalidTagEscape | InvalidTagUtf8 | InvalidTagUtf8LeadingByte
            | InvalidTagUtf8TrailingByte | UndeclaredTagHandle | DuplicateTagDirective =>
            "a tag (!) has no use here: quote a text that begins with !",
        DuplicateVersionDirective | UnsupportedYamlMajorVersion | InvalidDirectiveTerminator
            | DirectiveDisallowed | MissingYamlVersionSeparator | MissingDirectiveName
            | InvalidDirectiveName | DirectiveByteLimitExceeded { .. }
            | TooManyReservedDirectiveParams { .. } | YamlVersionTooLong | MissingYamlVersion =>
            "a directive (%) has no use here: quote a text that begins with %",
        BomInsideDocument => "a byte order mark cannot stand here",
        InputDecoding { .. } => "is not a text in UTF-8",
        RecursionLimitExceeded => "lists and mappings are nested more than 255 deep",
        // What cannot happen to a text in memory.
        _ => "is not YAML",
    };
    text.to_owned()
}
