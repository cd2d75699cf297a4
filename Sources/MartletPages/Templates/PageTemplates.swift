/// The templates of a folder, which replace all pages.
package struct PageTemplates: Sendable {
    private let templates: [PageTemplate.Name: PageTemplate]

    subscript(name: PageTemplate.Name) -> PageTemplate? { templates[name] }

    /// Reads every template of a folder.
    ///
    /// - Parameters:
    ///   - folder: its path, for messages and `read`.
    ///   - read: returns the content of a file; a file that is larger than the limit is an error.
    /// - Returns: the templates, or `nil` and the first error of each template.
    package static func load(
        _ folder: String, read: (_ path: String, _ limit: Int) throws(PageFileError) -> [UInt8]
    ) -> (templates: PageTemplates?, errors: [TemplateError]) {
        var (templates, errors) = ([PageTemplate.Name: PageTemplate](), [TemplateError]())
        for name in PageTemplate.Name.allCases {
            do throws(TemplateError) {
                templates[name] = try template(name, at: path(of: name, in: folder), read)
            } catch {
                errors.append(error)
            }
        }
        return (errors.isEmpty ? PageTemplates(templates: templates) : nil, errors)
    }

    /// The files that a folder needs.
    package static func paths(in folder: String) -> [String] {
        PageTemplate.Name.allCases.map { path(of: $0, in: folder) }
    }

    private static func path(of name: PageTemplate.Name, in folder: String) -> String {
        "\(folder)\(folder.hasSuffix("/") ? "" : "/")\(name.rawValue)"
    }

    private static func template(
        _ name: PageTemplate.Name, at path: String,
        _ read: (_ path: String, _ limit: Int) throws(PageFileError) -> [UInt8]
    ) throws(TemplateError) -> PageTemplate {
        let bytes: [UInt8]
        do throws(PageFileError) { bytes = try read(path, PageTemplate.maximumBytes) } catch {
            throw TemplateError(
                code: error.isTooLarge ? .templateTooLarge : .templateUnreadable, message: error.reason, file: path,
                position: nil)
        }
        return try PageTemplate(bytes, for: name, file: path)
    }
}
