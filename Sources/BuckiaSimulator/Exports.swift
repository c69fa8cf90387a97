// `import BuckiaSimulator` is enough: policies, resolvers and values are Buckia's.
@_exported import Buckia
