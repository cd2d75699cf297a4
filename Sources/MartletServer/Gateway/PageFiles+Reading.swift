internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletPages

extension PageFiles {
    /// Of the digest in the logo's URL.
    private static let versionBytes = 12

    /// Reads the files of `browser.pages`, and reports errors at the key that names a file, or at their position in a
    /// template.
    /// - Parameter providers: their labels and icons.
    init(
        _ configuration: BrowserPagesConfiguration, _ providers: [ProviderConfiguration] = [],
        into diagnostics: inout Diagnostics
    ) {
        var faces: [String: ProviderFace] = [:]
        for provider in providers where provider.label != nil || provider.icon != nil {
            faces[provider.name.value] = ProviderFace(
                label: provider.label, icon: provider.icon.flatMap { Self.image($0, "icon_file", &diagnostics) })
        }
        self.init(
            logo: configuration.logo.flatMap { Self.image($0, "logo_file", &diagnostics) },
            templates: configuration.templateFolder.flatMap { Self.templates($0, &diagnostics) }, faces: faces)
    }

    /// Every file besides those that a key names, for `server.watch`.
    static func unnamedFiles(_ configuration: BrowserPagesConfiguration) -> [FilePath] {
        configuration.templateFolder.map { PageTemplates.paths(in: $0.value.text).map { FilePath($0) } } ?? []
    }

    private static func image(
        _ file: Located<FilePath>, _ key: String, _ diagnostics: inout Diagnostics
    ) -> PageLogo? {
        let bytes: [UInt8]
        do throws(PageFileError) { bytes = try read(file.value.text, limit: PageLogo.maximumBytes) } catch {
            diagnostics.error(
                error.isTooLarge ? .logoTooLarge : .logoUnreadable, at: file.location, "\(key): \(error.reason)")
            return nil
        }
        let version = Base64URL.encode(Array(SHA256.digest(bytes).prefix(versionBytes)))
        guard let logo = PageLogo(bytes, version: version) else {
            diagnostics.error(
                .logoUnsupported, at: file.location,
                "\(key): '\(file.value)' is no SVG with a namespace, PNG, JPEG or WebP image")
            return nil
        }
        return logo
    }

    private static func templates(
        _ folder: Located<FilePath>, _ diagnostics: inout Diagnostics
    ) -> PageTemplates? {
        let (templates, errors) = PageTemplates.load(folder.value.text) { (path, limit) throws(PageFileError) in
            try read(path, limit: limit)
        }
        for error in errors {
            if let position = error.position {
                let location = SourceLocation(file: error.file, line: position.line, column: position.column)
                diagnostics.error(error.code, at: location, error.message)
            } else {
                diagnostics.error(error.code, at: folder.location, "template_dir: \(error.message)")
            }
        }
        return templates
    }

    private static func read(_ path: String, limit: Int) throws(PageFileError) -> [UInt8] {
        do throws(FileReadError) { return try readWholeFile(path, limit: limit) } catch {
            throw PageFileError("cannot read '\(path)': \(error.reason)", isTooLarge: error.isTooLarge)
        }
    }
}
