public import MartletCore

/// A provider that brings a simulator of the service behind it, so that `martlet demo` shows both at work.
///
/// The demo serves the simulator on a loopback port, adds the provider under the name of its kind and a route that needs
/// its credentials, and prints the demonstrations as commands.
public protocol Simulating: Provider {
    /// Makes the simulator of one demo; called once, before anything is served.
    ///
    /// - Throws: any error; the demo does not start then, and prints it.
    static func simulator(at site: SimulatorSite) throws -> Simulator
}

/// Where a demo runs a simulator.
public struct SimulatorSite: Sendable {
    /// The simulator's base URL, without a slash at its end: http, on a loopback port.
    public let url: String
    /// A path of the gateway; requests for it need a credential of the provider.
    public let path: String
    /// The path of the folder with the simulator's ``Simulator/files``, without a slash at its end.
    public let folder: String
    /// The source of time of the demo.
    public let clock: Clock

    public init(url: String, path: String, folder: String, clock: Clock) {
        self.url = url
        self.path = path
        self.folder = folder
        self.clock = clock
    }
}
