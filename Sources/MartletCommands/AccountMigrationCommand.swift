internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet accounts migrate`: upgrades the schema of the account store, or says whether it has to be.
struct AccountMigrationCommand {
    private let isCheck: Bool
    private let asJSON: Bool
    private let command: ConfiguredCommand

    init(_ options: Options, _ registry: ProviderRegistry) {
        isCheck = options.has("check")
        asJSON = options.has("json")
        command = ConfiguredCommand(options, registry)
    }

    func run() async throws(StartError) -> ExitCode {
        try await command.run { blueprint, services throws(StartError) in
            guard let accounts = blueprint.configuration.accounts else {
                throw StartError(
                    code: "account.no_accounts", message: "the configuration has no accounts:", exit: .configuration)
            }
            let versions: SchemaVersions
            do throws(AccountError) {
                let migration = try migration(accounts, services)
                versions = try await isCheck ? migration.check() : migration.run()
            } catch {
                throw StartError(error, exit: error.code == .accountsBadURL ? .configuration : .unavailable)
            }
            Output.line(asJSON ? json(versions) : line(versions))
            return isCheck && versions.state == .behind ? .rejected : .ok
        }
    }

    private func migration(
        _ accounts: AccountsConfiguration, _ services: Services
    ) throws(AccountError) -> AccountMigration {
        var pool = AccountPool()
        pool.statementTimeout = accounts.statementTimeout
        return AccountMigration(
            try AccountURL(accounts.url.value), pool: pool, clock: services.clock, logger: services.logger,
            loop: services.loop, resolver: services.resolver)
    }

    private func line(_ versions: SchemaVersions) -> String {
        let found = versions.found == 0 ? "no schema" : "schema version \(versions.found)"
        return switch versions.state {
        case .behind where isCheck: "\(found); this version of Martlet needs \(versions.latest)"
        case .behind: "migrated from \(found) to \(versions.latest)"
        case .current: "\(found) is current"
        case .next: "\(found) is the next one; this version of Martlet has \(versions.latest), and runs on it"
        }
    }

    private func json(_ versions: SchemaVersions) -> String {
        let (found, latest) = (JSONValue.integer(versions.found), JSONValue.integer(versions.latest))
        var members: [(String, JSONValue)]
        if isCheck {
            members = [("schema", found), ("latest", latest), ("state", .string(versions.state.rawValue))]
        } else {
            members = [("from", found), ("to", .integer(max(versions.found, versions.latest)))]
        }
        return String(decoding: JSON.write(.object(JSONObject(members))), as: UTF8.self)
    }
}
