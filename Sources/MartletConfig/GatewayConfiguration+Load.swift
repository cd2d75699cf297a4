extension GatewayConfiguration {
    /// Reads and checks a configuration file.
    ///
    /// - Parameters:
    ///   - path: the file; positions carry it as it is given here.
    ///   - environment: looks up `${VAR}`.
    ///   - knownKinds: the kinds of the provider plugins that are there.
    /// - Returns: the configuration, or `nil` when there is an error; and everything that was found.
    package static func load(
        path: String, environment: @escaping (String) -> String?, knownKinds: [String]
    ) -> (configuration: GatewayConfiguration?, diagnostics: Diagnostics) {
        do throws(FileFailure) {
            let text = try readWholeFile(path, limit: NodeBuilder.Limit.fileBytes)
            return decode(text: text, file: path, environment: environment, knownKinds: knownKinds)
        } catch {
            var diagnostics = Diagnostics()
            diagnostics.error(
                error.isTooLarge ? .configTooLarge : .configFileUnreadable,
                at: SourceLocation(file: path, line: 1, column: 1), "cannot read the configuration: \(error.reason)")
            return (nil, diagnostics)
        }
    }

    /// Checks a configuration that is in memory already; see ``load(path:environment:knownKinds:)``.
    package static func decode(
        text: [UInt8], file: String, environment: @escaping (String) -> String?, knownKinds: [String]
    ) -> (configuration: GatewayConfiguration?, diagnostics: Diagnostics) {
        var found = Diagnostics()
        let parsed = ConfigurationNode.parseDocument(text, file: file, environment: environment, into: &found)
        guard let (root, brokenScalars) = parsed else { return (nil, found) }
        var diagnostics = Diagnostics()
        let configuration = GatewayConfiguration.decode(root, knownKinds: knownKinds, into: &diagnostics)
        // What is said about a scalar whose variable is unset only repeats that.
        found.add(Diagnostics(diagnostics.all.filter { !brokenScalars.contains($0.location) }))
        return (found.hasErrors ? nil : configuration, found)
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
