extension GatewayConfiguration {
    /// Decodes `admin:` alone: what a command needs to reach a running gateway, whatever is wrong elsewhere in the file.
    ///
    /// - Parameters:
    ///   - text: the file.
    ///   - file: its path; relative paths are resolved against it.
    ///   - environment: looks up `${VAR}`.
    /// - Returns: the block, `nil` with `off` and after errors; and the diagnostics that concern it. After a syntax error
    ///   no block can be read.
    package static func decodeAdmin(
        text: [UInt8], file: String, environment: @escaping (String) -> String?
    ) -> (admin: AdminConfiguration?, diagnostics: Diagnostics) {
        var parsing = Diagnostics()
        let parsed = ConfigurationNode.parseDocument(text, file: file, environment: environment, into: &parsing)
        guard let (root, unresolvedScalars) = parsed else { return (nil, parsing) }
        do {
            var reader = try ConfigurationReader(root, title: ConfigurationReader.documentTitle) { grammar }
            // A value without its variables is not the one that was meant, even if it can be decoded.
            let unresolved = unresolvedScalars.intersection(root["admin"]?.scalarLocations ?? [])
            if !unresolved.isEmpty {
                return (nil, Diagnostics(parsing.all.filter { unresolved.contains($0.location) }))
            }
            let admin = readAdmin(&reader)
            return (reader.diagnostics.hasErrors ? nil : admin, reader.diagnostics)
        } catch {
            parsing.add(error)
            return (nil, parsing)
        }
    }
}

extension ConfigurationNode {
    /// The positions of all scalars, at any depth.
    fileprivate var scalarLocations: [SourceLocation] {
        switch content {
        case .scalar: [location]
        case .sequence(let elements): elements.flatMap(\.scalarLocations)
        case .mapping(let entries): entries.flatMap(\.value.scalarLocations)
        }
    }
}
