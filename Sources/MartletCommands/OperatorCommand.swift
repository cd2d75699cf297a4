internal import MartletCore
internal import MartletServer

/// Where a command about accounts or sessions works: at the running gateway, and else in the stores.
struct OperatorCommand {
    fileprivate static let offline = CommandOption.flag(
        "offline", "work in the stores of the configuration, whether or not a gateway is running")
    /// How commands describe it.
    static let details = """
        This is done by the running gateway, through the admin listener of --admin or of the configuration. Without
        --admin it is done in the stores where no gateway is running, or it accepts no change that comes without a token;
        with --offline always.
        """

    /// Why the stores are used: no gateway can be asked, and nothing was changed.
    private static let reasons: [ErrorCode] = [
        "server.no_admin", "server.bad_address", "server.not_running", AdminRequests.unproven,
    ]

    private let admin: AdminAddress
    private let stores: ConfiguredCommand
    private let isOffline: Bool

    /// - Parameter isOffline: whether gateways do not do what the command is for.
    init(_ options: Options, _ program: Program, isOffline: Bool = false) {
        admin = AdminAddress(options, program.registry)
        stores = ConfiguredCommand(options, program.registry)
        self.isOffline = isOffline || options.has("offline")
    }

    /// Runs a command.
    /// - Parameters:
    ///   - unknown: what a gateway's 404 means.
    ///   - atGateway: works at a gateway; its first request decides whether one can be asked.
    ///   - inStores: works in the stores.
    func run(
        unknown: StartError, atGateway: (AdminRequests) throws(StartError) -> Void,
        inStores: (Blueprint, Services) async throws(StartError) -> Void
    ) async throws(StartError) -> ExitCode {
        do throws(StartError) {
            if !isOffline {
                let target = try admin.target()
                // Commands have no certificate.
                if admin.isGiven || !target.requiresCertificate {
                    try atGateway(AdminRequests(target, unknown: unknown, printsJSON: false))
                    return .ok
                }
            }
        } catch {
            guard !admin.isGiven, Self.reasons.contains(error.code) else { throw error }
            if error.code == AdminRequests.unproven {
                Output.error("note: done in the stores, because the gateway requires a token: \(error)\n")
            }
        }
        return try await stores.run { blueprint, services throws(StartError) in
            try await inStores(blueprint, services)
            return .ok
        }
    }
}

extension CommandGrammar {
    mutating func addOperatorOptions() {
        options += AdminAddress.options + [OperatorCommand.offline]
        alternatives += [.atMostOne("admin", "address", "offline")]
    }
}
