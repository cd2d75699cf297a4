package import MartletConfig

extension GatewayConfiguration {
    /// The name of a process that reads this configuration: `instance_id`, or a new one, which no other process has.
    ///
    /// - Parameter host: the name of this host.
    package func makeInstanceID(host: String) -> String {
        if let instanceID { return instanceID }
        var generator = SystemRandomNumberGenerator()
        return InstanceID.make(host: host, using: &generator)
    }
}

/// The name that a process gives itself: the name of its host, `-`, and six random characters.
enum InstanceID {
    private static let maximumHostBytes = 57
    private static let digits = Array("abcdefghijklmnopqrstuvwxyz0123456789".utf8)

    /// - Parameter host: bytes that names may not have are replaced.
    static func make(host: String, using generator: inout some RandomNumberGenerator) -> String {
        var name = host.utf8.prefix(maximumHostBytes).map { byte in
            let isAllowed = EntityName.validationError(in: "a" + String(UnicodeScalar(byte))) == nil
            return isAllowed ? byte : 0x5F
        }
        if name.isEmpty { name = Array("martlet".utf8) }
        if name[0] == 0x2D || name[0] == 0x2E { name[0] = 0x5F }
        name.append(0x2D)
        for _ in 0..<6 { name.append(digits.randomElement(using: &generator) ?? 0x30) }
        return String(decoding: name, as: UTF8.self)
    }
}
