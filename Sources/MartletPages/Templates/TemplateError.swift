package import MartletCore

/// Why a template cannot be used.
package struct TemplateError: CodedError, Equatable {
    /// A place in a template.
    package struct Position: Sendable, Equatable {
        /// From 1.
        package let line: Int
        /// From 1, in characters.
        package let column: Int
    }

    package let code: ErrorCode
    package let message: String
    package let file: String
    /// `nil` if the file could not be read.
    package let position: Position?
}

/// The error codes of this module; `Pages.md` lists them for operators.
extension ErrorCode {
    /// A template does not exist or cannot be read.
    package static let templateUnreadable: ErrorCode = "pages.template_unreadable"
    /// A template is larger than the limit.
    package static let templateTooLarge: ErrorCode = "pages.template_too_large"
    /// Not UTF-8, or braces, sections or tags that do not match.
    package static let templateSyntax: ErrorCode = "pages.template_syntax"
    /// The page has no value of this name.
    package static let templateUnknownName: ErrorCode = "pages.template_unknown_name"
    /// A value where no value, or not this one, may be.
    package static let templatePosition: ErrorCode = "pages.template_position"
    /// A script, which would not run.
    package static let templateScript: ErrorCode = "pages.template_script"
    /// A form that does not post, or without its token.
    package static let templateIncomplete: ErrorCode = "pages.template_incomplete"
}
