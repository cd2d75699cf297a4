/// What an operator's files add to the pages: a logo, and templates that replace them.
package struct PageFiles: Sendable {
    /// `nil`: pages show no logo.
    package let logo: PageLogo?
    /// `nil`: our own pages.
    package let templates: PageTemplates?

    package init(logo: PageLogo? = nil, templates: PageTemplates? = nil) {
        self.logo = logo
        self.templates = templates
    }
}

/// Why a file of the pages could not be read.
package struct PageFileError: Error {
    /// For operators, with the name of the file.
    package let reason: String
    package let isTooLarge: Bool

    package init(_ reason: String, isTooLarge: Bool) {
        self.reason = reason
        self.isTooLarge = isTooLarge
    }
}
