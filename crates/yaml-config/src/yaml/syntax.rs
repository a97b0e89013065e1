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
            return format!("the character {character} is not allowed here: quote the text");
        }
        UnclosedFlowCollection { open } => return format!("the bracket {open} is not closed"),
        MismatchedFlowCollectionEnd { open, close } => {
            return format!("the bracket {open} is closed by {close}");
        }
        UnexpectedEofFlowSequence | ExpectedFlowSequenceSeparator =>
            "a comma or the closing ] is missing in a list [a, b]",
        UnexpectedEofFlowMapping | UnexpectedEofImplicitFlowMapping
            | ExpectedFlowMappingSeparator =>
            "a comma or the closing } is missing in a mapping {a: 1, b: 2}",
        MisplacedFlowCollectionEnd => "there is no opening bracket for this one",
        UnclosedQuotedScalar => "the quote is not closed",
        UnexpectedEof | UnexpectedEofBlockSequence | UnexpectedEofBlockMapping =>
            "the file ends in the middle of a value",
        TabNotAllowed | TabInBlockIndentation | TabInIndentation | TabAtBlockScalarStart
            | TabInPlainScalar =>
            "tabs are not allowed here: indent with spaces",
        InvalidIndentation | InvalidQuotedScalarIndent | InvalidBlockScalarIndent
            | InvalidFlowScalarIndent | ZeroBlockScalarIndent | ExpectedBlockMappingKey
            | ExpectedBlockSequenceEntry | BlockSequenceEntryNotAllowed | MappingKeyNotAllowed =>
            "wrong indentation: the keys of a mapping, and the entries of a list, must begin in \
             the same column",
        MappingValueNotAllowed | InvalidColonPlacement | FlowMappingValueAdjacentCollection =>
            "a colon is not allowed here: quote text that contains one; or a colon is missing in \
             the line before",
        SimpleKeyExpected | InvalidSimpleKey =>
            "a colon is missing after a key: write \"key: value\" on one line",
        InvalidMappingValueWhitespace | ExpectedWhitespace =>
            "a space is missing after the colon: write \"key: value\"",
        InvalidBlockEntryWhitespace => "a space is missing after the dash: write \"- value\"",
        BlockEntryInFlowCollection | PlainScalarStartsWithDashFlowIndicator =>
            "a dash is not allowed in a list [a, b]: quote the text, or use lines \"- a\"",
        ExpectedNodeContent | UnexpectedEndOfPlainScalar => "a value is missing",
        InvalidTrailingSingleQuotedScalar | InvalidTrailingDoubleQuotedScalar =>
            "there is text after the closing quote",
        UnknownQuotedScalarEscape | InvalidQuotedScalarHexEscape | InvalidUnicodeEscape
            | InvalidLowSurrogate | InvalidLowSurrogateHexEscape | MissingLowSurrogate
            | UnpairedLowSurrogate =>
            "invalid escape: in double quotes \\ begins an escape such as \\n or \\\\; use single \
             quotes for plain text",
        CommentNotSeparated | CommentInterceptedScalar =>
            "a comment needs a space before its #, and is not allowed within text",
        InvalidBlockScalarHeader => "after | or > the text must begin on the next line",
        UnknownAnchor => "the alias (*) has no anchor (&) before it",
        MissingAnchorOrAliasName =>
            "an anchor (&) or alias (*) has no name: quote text that begins with & or *",
        DocumentIndicatorInQuotedScalar | ExpectedDocumentStart | InvalidDocumentEnd
            | MissingDocumentEndBeforeDirective | MultipleDocumentsUnsupported =>
            "only one document per file: --- may only be at its beginning, and ... at its end",
        ExpectedTagBang | ExpectedTagDirectiveBang | InvalidGlobalTagCharacter
            | InvalidTagDirectiveTerminator | InvalidTagTerminator | MissingTagUri
            | UnclosedVerbatimTag | InvalidTagEscape | InvalidTagUtf8 | InvalidTagUtf8LeadingByte
            | InvalidTagUtf8TrailingByte | UndeclaredTagHandle | DuplicateTagDirective =>
            "tags (!) are not supported: quote text that begins with !",
        DuplicateVersionDirective | UnsupportedYamlMajorVersion | InvalidDirectiveTerminator
            | DirectiveDisallowed | MissingYamlVersionSeparator | MissingDirectiveName
            | InvalidDirectiveName | DirectiveByteLimitExceeded { .. }
            | TooManyReservedDirectiveParams { .. } | YamlVersionTooLong | MissingYamlVersion =>
            "directives (%) are not supported: quote text that begins with %",
        BomInsideDocument => "a byte order mark is not allowed here",
        InputDecoding { .. } => "is not UTF-8",
        RecursionLimitExceeded => "lists and mappings are nested more than 255 deep",
        // What cannot happen to a text in memory.
        _ => "is not YAML",
    };
    text.to_owned()
}
