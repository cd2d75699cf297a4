/// What libraries are compared with.
package struct PluginHost: Sendable {
    package var facts: PluginFacts
    /// The stamps of earlier minor versions of the same major version, by minor version.
    package var earlier: [UInt32: String]
    package var machine: ELFLibrary.Machine
    /// The user that the gateway runs as.
    package var user: UInt32

    package init(
        facts: PluginFacts = .gateway, earlier: [UInt32: String] = PluginHost.earlierStamps,
        machine: ELFLibrary.Machine = .current, user: UInt32
    ) {
        self.facts = facts
        self.earlier = earlier
        self.machine = machine
        self.user = user
    }

    /// The stamps of the versions whose plugins still fit: `Tests/API/run` adds one for each minor version.
    package static let earlierStamps: [UInt32: String] = [:]
}
