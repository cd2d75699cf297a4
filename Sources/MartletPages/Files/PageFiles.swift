/// What an operator's files add to the pages: a logo, and templates that replace them.
package struct PageFiles: Sendable {
    /// `nil`: pages show no logo.
    package let logo: PageLogo?
    /// `nil`: our own pages.
    package let templates: PageTemplates?
    /// How providers look, by their names; without an entry by their names alone.
    package let faces: [String: ProviderFace]

    /// How a provider looks on pages.
    package struct ProviderFace: Sendable {
        /// `nil`: its name.
        package let label: String?
        package let icon: PageLogo?

        package init(label: String?, icon: PageLogo?) {
            self.label = label
            self.icon = icon
        }
    }

    package init(logo: PageLogo? = nil, templates: PageTemplates? = nil, faces: [String: ProviderFace] = [:]) {
        self.faces = faces
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
