extension GatewayConfiguration {
    /// Reads and checks a configuration file.
    ///
    /// - Parameters:
    ///   - path: the file; positions carry it as it is given here.
    ///   - environment: looks up `${VAR}`.
    ///   - knownKinds: the kinds of the provider plugins that are there.
    ///   - examine: looks at what could be read, whatever else is wrong in the file, and records what it finds; blocks with
    ///     mistakes are left out or have their defaults there.
    /// - Returns: the configuration, or `nil` when there is an error in what is read here; and everything that was found.
    package static func load(
        path: String, environment: @escaping (String) -> String?, knownKinds: [String],
        examine: (GatewayConfiguration, inout Diagnostics) -> Void = { _, _ in }
    ) -> (configuration: GatewayConfiguration?, diagnostics: Diagnostics) {
        do throws(FileFailure) {
            let text = try readWholeFile(path, limit: NodeBuilder.Limit.fileBytes)
            return decode(
                text: text, file: path, environment: environment, knownKinds: knownKinds, examine: examine)
        } catch {
            var diagnostics = Diagnostics()
            let hint =
                error.isMissing ? "; give its place as --config FILE, or write one to begin with by 'martlet init'" : ""
            diagnostics.error(
                error.isTooLarge ? .configTooLarge : .configFileUnreadable,
                at: SourceLocation(file: path, line: 1, column: 1),
                "cannot read the configuration: \(error.reason)\(hint)")
            return (nil, diagnostics)
        }
    }

    /// Checks a configuration that is in memory already; see ``load(path:environment:knownKinds:examine:)``.
    package static func decode(
        text: [UInt8], file: String, environment: @escaping (String) -> String?, knownKinds: [String],
        examine: (GatewayConfiguration, inout Diagnostics) -> Void = { _, _ in }
    ) -> (configuration: GatewayConfiguration?, diagnostics: Diagnostics) {
        var found = Diagnostics()
        let parsed = ConfigurationNode.parseDocument(text, file: file, environment: environment, into: &found)
        guard let (root, brokenScalars) = parsed else { return (nil, found) }
        var diagnostics = Diagnostics()
        var configuration = GatewayConfiguration.decode(root, knownKinds: knownKinds, into: &diagnostics)
        configuration?.source.text = text
        configuration?.source.file = file
        configuration?.source.files = root.namedFiles(relativeTo: file)
        // What is said about a scalar whose variable is unset only repeats that.
        found.add(Diagnostics(diagnostics.all.filter { !brokenScalars.contains($0.location) }))
        let isGood = !found.hasErrors
        var examined = Diagnostics()
        if let configuration { examine(configuration, &examined) }
        found.add(Diagnostics(examined.all.filter { !brokenScalars.contains($0.location) }))
        return (isGood ? configuration : nil, found)
    }

    private static func decode(
        _ root: ConfigurationNode, knownKinds: [String], into diagnostics: inout Diagnostics
    ) -> GatewayConfiguration? {
        do {
            var reader = try ConfigurationReader(root, title: ConfigurationReader.documentTitle, grammar: grammar)
            let configuration = read(&reader, knownKinds: knownKinds)
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
    /// The values of all keys that end in `_file`, at any depth.
    fileprivate func namedFiles(relativeTo file: String) -> [FilePath] {
        switch content {
        case .scalar: return []
        case .sequence(let elements): return elements.flatMap { $0.namedFiles(relativeTo: file) }
        case .mapping(let entries):
            return entries.flatMap { entry -> [FilePath] in
                guard entry.key.value.hasSuffix("_file"), case .scalar(let scalar) = entry.value.content else {
                    return entry.value.namedFiles(relativeTo: file)
                }
                return [FilePath(scalar.text, relativeTo: file)]
            }
        }
    }
}
