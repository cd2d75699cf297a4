extension GatewayConfiguration {
    /// Reads and checks a configuration file.
    ///
    /// - Parameters:
    ///   - path: the file; diagnostics show it as given here.
    ///   - environment: looks up `${VAR}`.
    ///   - knownKinds: the kinds of the provider plugins that are compiled in.
    ///   - loadPlugins: loads the libraries of `plugins:` and returns all kinds; `nil` if they are not to be loaded, and
    ///     then any kind is accepted where there are some.
    ///   - examine: checks what could be decoded, even if the file has errors, and records diagnostics; invalid blocks
    ///     are omitted or have their defaults.
    /// - Returns: the configuration, or `nil` if reading or decoding had errors; and all diagnostics.
    package static func load(
        path: String, environment: @escaping (String) -> String?, knownKinds: [String],
        loadPlugins: AvailableKinds.Loader? = nil,
        examine: (GatewayConfiguration, inout Diagnostics) -> Void = { _, _ in }
    ) -> (configuration: GatewayConfiguration?, diagnostics: Diagnostics) {
        do throws(FileReadError) {
            let text = try readWholeFile(path, limit: NodeBuilder.Limit.fileBytes)
            return decode(
                text: text, file: path, environment: environment, knownKinds: knownKinds, loadPlugins: loadPlugins,
                examine: examine)
        } catch {
            var diagnostics = Diagnostics()
            let hint =
                error.isMissing ? "; pass its path with --config FILE, or create one with 'martlet init'" : ""
            diagnostics.error(
                error.isTooLarge ? .configTooLarge : .configFileUnreadable,
                at: SourceLocation(file: path, line: 1, column: 1),
                "cannot read the configuration: \(error.reason)\(hint)")
            return (nil, diagnostics)
        }
    }

    /// Decodes and checks a configuration in memory; see ``load(path:environment:knownKinds:loadPlugins:examine:)``.
    package static func decode(
        text: [UInt8], file: String, environment: @escaping (String) -> String?, knownKinds: [String],
        loadPlugins: AvailableKinds.Loader? = nil,
        examine: (GatewayConfiguration, inout Diagnostics) -> Void = { _, _ in }
    ) -> (configuration: GatewayConfiguration?, diagnostics: Diagnostics) {
        var found = Diagnostics()
        let parsed = ConfigurationNode.parseDocument(text, file: file, environment: environment, into: &found)
        guard let (root, unresolvedScalars) = parsed else { return (nil, found) }
        var diagnostics = Diagnostics()
        var configuration = GatewayConfiguration.decode(
            root, AvailableKinds(compiledIn: knownKinds, loadPlugins: loadPlugins), into: &diagnostics)
        configuration?.source.text = text
        configuration?.source.file = file
        var files: [FilePath] = []
        root.addNamedFiles(relativeTo: file, to: &files)
        configuration?.source.files = files
        // Further errors of a scalar with an unset variable are only its consequence.
        found.add(Diagnostics(diagnostics.all.filter { !unresolvedScalars.contains($0.location) }))
        let isValid = !found.hasErrors
        var examined = Diagnostics()
        if let configuration { examine(configuration, &examined) }
        found.add(Diagnostics(examined.all.filter { !unresolvedScalars.contains($0.location) }))
        return (isValid ? configuration : nil, found)
    }

    private static func decode(
        _ root: ConfigurationNode, _ kinds: AvailableKinds, into diagnostics: inout Diagnostics
    ) -> GatewayConfiguration? {
        do {
            var reader = try ConfigurationReader(root, title: ConfigurationReader.documentTitle) { grammar }
            let configuration = read(&reader, kinds: kinds)
            reader.finish()
            diagnostics.add(reader.diagnostics)
            return configuration
        } catch {
            diagnostics.add(error)
            return nil
        }
    }
}

extension ConfigurationNode {
    /// Adds the values of all keys that end in `_file`, at any depth.
    fileprivate func addNamedFiles(relativeTo file: String, to files: inout [FilePath]) {
        switch content {
        case .scalar: break
        case .sequence(let elements): for element in elements { element.addNamedFiles(relativeTo: file, to: &files) }
        case .mapping(let entries):
            for entry in entries {
                guard entry.key.value.hasSuffix("_file"), case .scalar(let scalar) = entry.value.content else {
                    entry.value.addNamedFiles(relativeTo: file, to: &files)
                    continue
                }
                files.append(FilePath(scalar.text, relativeTo: file))
            }
        }
    }
}
